/** Service account tokens for machines without Kubernetes. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { existsSync, linkSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { calculateJwkThumbprint, exportJWK, SignJWT } from 'jose';
import { spiffeUriOf } from '../../../identity/spiffe-id.ts';
import { ChartpilotError, isSystemError, messageOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import { ensureDirectory } from '../../../runtime/files/make-folder.ts';
import { requirePrivate, writePrivateFile } from '../../../runtime/files/private-file.ts';
import type { TokenRule } from './bearer-token.ts';
import { localKeys } from './issuer-keys.ts';

export const localIssuer = 'pilot-discovery';
export const defaultAudience = 'istio-ca';
/** Name of the file in SELF_SIGNED_CA_DIR. */
export const localTokenFile = 'token.key';

export interface TokenOrder {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly audience: string;
  readonly ttlSeconds: number;
}

const maxKeyFileBytes = 64 * 1024;

/**
 * Creates the file if it does not exist.
 *
 * @throws ChartpilotError if other users can read the file, or if it contains no P-256 key
 */
export function localTokenKey(file: string): KeyObject {
  if (!existsSync(file)) createKey(file);
  requirePrivate(file, 'a reader of the file can create a token for any workload');
  try {
    const key = createPrivateKey(readBoundedText(file, maxKeyFileBytes));
    if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error('the key must be an ECDSA key on P-256');
    return key;
  } catch (error) {
    throw new ChartpilotError('CONFIG_INVALID', `${file}: ${messageOf(error)}`, { cause: error });
  }
}

/** Never replaces a file that another process creates at the same time. */
function createKey(file: string): void {
  ensureDirectory(dirname(file), 0o700);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const temporaryPath = `${file}.${process.pid}.new`;
  writePrivateFile(temporaryPath, privateKey.export({ format: 'pem', type: 'pkcs8' }) as string);
  try {
    linkSync(temporaryPath, file);
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw error;
  } finally {
    rmSync(temporaryPath, { force: true });
  }
}

/** @throws RangeError for invalid names */
export async function issueToken(
  key: KeyObject,
  { namespace, serviceAccount, audience, ttlSeconds }: TokenOrder,
  now: Date,
): Promise<string> {
  // Rejects names that form no identity.
  spiffeUriOf({ trustDomain: 'any', namespace, serviceAccount });
  const issuedAt = Math.floor(now.getTime() / 1000);
  return new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', kid: await keyIdOf(key), typ: 'JWT' })
    .setIssuer(localIssuer)
    .setSubject(`system:serviceaccount:${namespace}:${serviceAccount}`)
    .setAudience(audience)
    .setIssuedAt(issuedAt)
    .setNotBefore(issuedAt)
    .setExpirationTime(issuedAt + ttlSeconds)
    .setJti(randomUUID())
    .sign(key);
}

export async function localTokenRule(key: KeyObject, audiences: readonly string[]): Promise<TokenRule> {
  const publicKey = await exportJWK(createPublicKey(key));
  const keys = localKeys({ keys: [{ ...publicKey, kid: await keyIdOf(key), alg: 'ES256', use: 'sig' }] });
  return { issuer: localIssuer, audiences, keys };
}

async function keyIdOf(key: KeyObject): Promise<string> {
  return calculateJwkThumbprint(await exportJWK(createPublicKey(key)));
}
