/** Parses boolean environment variables like Istio's agent. */

import type { OptionErrors } from '../../runtime/option-errors.ts';
import { booleanOf } from './go-boolean.ts';
import { unknownValue } from './violation.ts';

/** Treats invalid values as off; {@link checkSwitches} rejects them at the start. */
export function isSwitchOn(text: string | undefined): boolean {
  return booleanOf(text ?? '') === true;
}

const switchVariables = [
  ...['BOOTSTRAP_XDS_AGENT', 'FILE_MOUNTED_CERTS', 'ISTIO_DELTA_XDS', 'ISTIO_DUAL_STACK', 'ISTIO_META_DNS_CAPTURE'],
  'PROXY_CONFIG_XDS_AGENT',
];

/** Without this check, a typo would silently mean "off". */
export function checkSwitches(env: NodeJS.ProcessEnv, errors: OptionErrors): void {
  for (const variable of switchVariables) readSwitch(variable, env, errors);
}

export function readSwitch(variable: string, env: NodeJS.ProcessEnv, errors: OptionErrors, fallback = false): boolean {
  const text = env[variable];
  const value = text ? booleanOf(text) : fallback;
  if (value === undefined) errors.addFlagError(variable, unknownValue(['true', 'false'], text));
  return value ?? fallback;
}
