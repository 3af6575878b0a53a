/** Which Gateway objects select a proxy (spec/discovery.md §8.7 "selection"). */
import type { Config } from './config.ts';
import type { Gateway } from './kinds/gateway.ts';
import { isSelected } from './label-match.ts';
import type { Proxy } from './proxy.ts';

export class GatewayIndex {
  private readonly gateways: readonly Config<Gateway>[];
  private readonly answers = new Map<string, readonly Config<Gateway>[]>();

  /** @param gateways oldest first */
  constructor(gateways: readonly Config<Gateway>[]) {
    this.gateways = gateways;
  }

  /** Of any namespace, oldest first; an object without a selector selects every router. */
  for(proxy: Pick<Proxy, 'type' | 'labels'>): readonly Config<Gateway>[] {
    if (proxy.type !== 'router') return [];
    const id = JSON.stringify(Object.entries(proxy.labels).sort());
    let answer = this.answers.get(id);
    if (answer === undefined) {
      answer = this.gateways.filter((gateway) => isSelected(gateway.spec.selector, proxy.labels));
      this.answers.set(id, answer);
    }
    return answer;
  }
}
