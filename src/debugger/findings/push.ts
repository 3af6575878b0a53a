import { count, durationText, text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { type CauseLink, causeChain } from '../trace/cause-chain.ts';
import type { Finding, FindingRule, RuleRun, Run } from './finding.ts';
import { timeSpent } from './time-spent.ts';

/** Reports slow pushes, measured from the change to the last client. */
export const pushRule: FindingRule = {
  name: 'push',
  reads: { events: ['clients.push', 'clients.served'] },
  begin: () => new PushRun(),
};

/** The threshold of Istio's own warning. */
const slowMs = 1_000;

class PushRun implements RuleRun {
  #pushIndex: number | undefined;

  onRecord(record: TraceRecord, index: number, run: Run): Finding[] | undefined {
    if (record.kind !== 'event') return undefined;
    if (record.event.type === 'clients.push') {
      this.#pushIndex = index;
      return undefined;
    }
    if (record.event.type !== 'clients.served' || this.#pushIndex === undefined) return undefined;
    const pushIndex = this.#pushIndex;
    this.#pushIndex = undefined;
    const order = run.recordAt(pushIndex) as TraceRecord & { kind: 'event' };
    const { links } = causeChain(run, pushIndex, isConfigurationChange);
    const root = links.at(-1);
    const from = root?.record.t ?? order.t;
    const durationMs = record.t - from;
    if (durationMs < slowMs) return undefined;
    const configs = Array.isArray(order.event.configs) ? order.event.configs.length : 0;
    const pushedText = order.event.forced === true ? 'all configuration' : count(configs, 'changed object');
    return [
      {
        rule: 'push',
        weight: 'note',
        sentence: `slow push: ${pushedText}, version ${text(order.event.version)}, sent to all clients ${durationText(durationMs)} after the change`,
        index,
        range: [root?.index ?? pushIndex, index],
        ...(root !== undefined && { root: root.index }),
        spent: timeSpent(record, [{ index: pushIndex, record: order, how: 'received' }, ...links]),
      },
    ];
  }
}

function isConfigurationChange({ record }: CauseLink): boolean {
  return record.kind === 'event' && (record.event.type === 'files.changed' || record.from === 'outside');
}
