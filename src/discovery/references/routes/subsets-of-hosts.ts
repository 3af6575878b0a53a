import type { Config } from '../../../model/config/config.ts';
import { coveringKeys } from '../../../model/fields/hostname.ts';
import type { DestinationRule } from '../../../model/kinds/destinations/destination-rule.ts';
import type { CheckSources } from '../config-warning.ts';

const maxNames = 5;

export class SubsetsOfHosts {
  readonly #rules = new Map<string, Config<DestinationRule>[]>();
  readonly #subsets = new Map<string, Set<string>>();

  static *build({ context, configs }: CheckSources): Generator<undefined, SubsetsOfHosts> {
    const subsets = new SubsetsOfHosts();
    for (const config of configs.DestinationRule) {
      yield undefined;
      const host = context.hostNames.qualify(config.spec.host, config.namespace);
      const rules = subsets.#rules.get(host);
      if (rules === undefined) subsets.#rules.set(host, [config]);
      else rules.push(config);
      const names = subsets.#subsets.get(host) ?? new Set();
      subsets.#subsets.set(host, names);
      for (const { name } of config.spec.subsets ?? []) names.add(name);
    }
    return subsets;
  }

  has(host: string, subset: string): boolean {
    for (const pattern of coveringKeys(host, this.#subsets)) if (this.#subsets.get(pattern)!.has(subset)) return true;
    return false;
  }

  ruleOf(host: string): Config<DestinationRule> | undefined {
    return this.#rules.get(host)?.[0];
  }

  namesOf(host: string): readonly string[] {
    return [...(this.#subsets.get(host) ?? [])].slice(0, maxNames);
  }
}
