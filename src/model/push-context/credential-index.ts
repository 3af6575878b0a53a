import type { RevocationLists } from '../../identity/revocation-list.ts';
import type { Config } from '../config/config.ts';
import { objectsByName } from '../config/config-set.ts';
import type { ConfigMap } from '../kinds/kubernetes/config-map.ts';
import { revocationListsOf } from '../kinds/kubernetes/credential.ts';
import type { Secret } from '../kinds/kubernetes/secret.ts';

export class CredentialIndex {
  private readonly secrets: ReadonlyMap<string, Config<Secret>>;
  private readonly configMaps: ReadonlyMap<string, Config<ConfigMap>>;

  private readonly lists: ReadonlyMap<string, CheckedLists>;

  /** @param previous index whose revocation lists remain in use for a Secret that no longer has a usable list */
  constructor(
    objects: {
      readonly Secret: readonly Config<Secret>[];
      readonly ConfigMap: readonly Config<ConfigMap>[];
    },
    previous?: CredentialIndex,
    now = new Date(),
  ) {
    this.secrets = objectsByName(objects.Secret);
    this.configMaps = objectsByName(objects.ConfigMap);
    this.lists = checkedLists(this.secrets, previous?.lists ?? new Map(), now);
  }

  revocationLists({ namespace, name }: Config<Secret>): RevocationLists | null {
    return this.lists.get(`${namespace}/${name}`)?.lists ?? null;
  }

  *withRevocationLists(): Iterable<CheckedLists> {
    yield* this.lists.values();
  }

  secret(namespace: string, name: string): Config<Secret> | undefined {
    return this.secrets.get(`${namespace}/${name}`);
  }

  configMap(namespace: string, name: string): Config<ConfigMap> | undefined {
    return this.configMaps.get(`${namespace}/${name}`);
  }
}

interface CheckedLists {
  readonly config: Config<Secret>;
  readonly lists: RevocationLists;
}

function checkedLists(
  secrets: ReadonlyMap<string, Config<Secret>>,
  previous: ReadonlyMap<string, CheckedLists>,
  now: Date,
): ReadonlyMap<string, CheckedLists> {
  const listsByName = new Map<string, CheckedLists>();
  for (const [name, config] of secrets) {
    const previousEntry = previous.get(name);
    // Revocation lists become valid, and expire, without a change of the Secret.
    const isCurrent = previousEntry?.config === config && previousEntry.lists.problems.length === 0;
    if (isCurrent && !isDue(previousEntry.lists, now)) listsByName.set(name, previousEntry);
    else {
      const lists = revocationListsOf(config.spec, now, previousEntry?.lists);
      if (lists !== undefined) listsByName.set(name, { config, lists });
    }
  }
  return listsByName;
}

function isDue({ recheckAt }: RevocationLists, now: Date): boolean {
  return recheckAt !== undefined && recheckAt <= now;
}
