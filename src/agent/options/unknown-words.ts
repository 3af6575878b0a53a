/** Warns about enumerated variables with unknown values, for which the default applies. */
import type { LogWarning } from '../../runtime/log-events/log-events.ts';

interface WordList {
  readonly known: readonly string[];
  readonly otherwise: string;
}

const variables: Readonly<Record<string, WordList>> = {
  JWT_POLICY: { known: ['third-party-jwt', 'first-party-jwt', 'none'], otherwise: 'none' },
  PILOT_CERT_PROVIDER: { known: ['istiod', 'kubernetes', 'custom', 'none'], otherwise: 'istiod' },
};

export function unknownValueWarnings(env: NodeJS.ProcessEnv): LogWarning[] {
  return Object.entries(variables).flatMap(([setting, { known, otherwise }]) => {
    const value = env[setting];
    if (!value || known.includes(value)) return [];
    const reason = `must be one of ${known.join(', ')}`;
    return [{ event: 'option.defaulted', setting, value, default: otherwise, reason }];
  });
}
