import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { count, spoken, text } from '../../runtime/verdicts/words.ts';
import type { RuleRun, Verdict, VerdictRule } from './verdict.ts';

/** What somebody would not take: certificates by the agent, configuration by the control plane, a response by a proxy. */
export const refusedRule: VerdictRule = {
  name: 'refused',
  reads: {
    events: ['config.rejected', 'configs.rejected', 'settings.rejected', 'request.judged'],
    kinds: ['unexpected'],
  },
  begin: () => new RefusedRun(),
};

class RefusedRun implements RuleRun {
  /** Proxies that reject one type for one reason are one verdict, told with the first of them. */
  readonly #rejections = new Set<string>();

  take(record: TraceRecord, index: number): Verdict[] | undefined {
    if (record.kind === 'unexpected') {
      return [
        verdict(index, `${record.actor} did not expect ${record.on} in ${record.state || 'no state'}: it is lost`),
      ];
    }
    if (record.kind !== 'event') return undefined;
    const { event, from } = record;
    switch (event.type) {
      case 'config.rejected':
      case 'configs.rejected':
      case 'settings.rejected':
        return [verdict(index, refusal(event))];
      case 'request.judged': {
        if (event.verdict !== 'rejection') return undefined;
        const type = text(event.typeUrl).replace(/^.*\./, '');
        const key = `${type} ${text(event.reason)}`;
        if (this.#rejections.has(key)) return undefined;
        this.#rejections.add(key);
        return [verdict(index, `the proxy of ${spoken(from)} rejects ${type}: ${text(event.reason)}`)];
      }
      default:
        return undefined;
    }
  }
}

function refusal(event: { readonly [field: string]: unknown }): string {
  if (typeof event.reason === 'string')
    return `what is configured would not do, and what was good stays: ${text(event.reason)}`;
  const problems = Array.isArray(event.problems) ? (event.problems as { message?: unknown }[]) : [];
  const [first] = problems;
  return `${count(problems.length, 'problem')} in what is configured, and what was good stays: ${text(first?.message)}`;
}

function verdict(index: number, sentence: string): Verdict {
  return { rule: 'refused', weight: 'bad', sentence, index, range: [index, index], root: index };
}
