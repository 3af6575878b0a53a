import type { CredentialIndex } from '../../model/push-context/credential-index.ts';
import { credentialDatesWithEffects } from './credential-dates.effects.ts';
import { secretAccessWithEffects } from './secret-access.effects.ts';
import type { SecretAccess } from './secret-access.ts';

export interface SecretsParts {
  readonly access: SecretAccess | undefined;
  readonly credentials: () => CredentialIndex | undefined;
}

export function makeSecrets({ access, credentials }: SecretsParts) {
  return {
    actors: () => ({
      ...(access && { secretAccess: secretAccessWithEffects(access) }),
      credentialDates: credentialDatesWithEffects(credentials),
    }),
  };
}
