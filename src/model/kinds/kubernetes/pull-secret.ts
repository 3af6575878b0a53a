import { isObject } from '../../../runtime/json-object.ts';
import { type Secret, secretBytes } from './secret.ts';

export const pullSecretKey = '.dockerconfigjson';
/** Limited, because the control plane sends it with each WasmPlugin that references it. */
const maxBytes = 64 * 1024;

export function pullSecretOf(secret: Secret): string | undefined {
  const bytes = secretBytes(secret, pullSecretKey);
  if (bytes === undefined || bytes.length > maxBytes) return undefined;
  const text = Buffer.from(bytes).toString('utf8');
  try {
    return isObject(JSON.parse(text)) ? text : undefined;
  } catch {
    return undefined;
  }
}
