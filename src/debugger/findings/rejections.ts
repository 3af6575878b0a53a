import { count, fileName, text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { Finding, FindingRule, RuleRun } from './finding.ts';

/** Rejections of certificates by the agent, of configuration by the control plane, and of responses by a proxy. */
export const rejectionRule: FindingRule = {
  name: 'refused',
  reads: {
    events: ['config.rejected', 'configs.rejected', 'settings.rejected', 'request.classified'],
    kinds: ['unexpected'],
  },
  begin: () => new RejectionRun(),
};

class RejectionRun implements RuleRun {
  /** One finding per type and reason, at the first proxy that rejects it. */
  readonly #rejections = new Set<string>();

  onRecord(record: TraceRecord, index: number): Finding[] | undefined {
    if (record.kind === 'unexpected') {
      return [
        findingOf(index, `${record.actor} dropped unexpected event ${record.on} in state ${record.state || '(none)'}`),
      ];
    }
    if (record.kind !== 'event') return undefined;
    const { event, from } = record;
    switch (event.type) {
      case 'config.rejected':
      case 'configs.rejected':
      case 'settings.rejected':
        return [findingOf(index, rejectionSentence(event))];
      case 'request.classified': {
        if (event.requestClass !== 'rejection') return undefined;
        const type = text(event.typeUrl).replace(/^.*\./, '');
        const key = `${type} ${text(event.reason)}`;
        if (this.#rejections.has(key)) return undefined;
        this.#rejections.add(key);
        return [findingOf(index, `the proxy of ${from} rejected ${type}: ${text(event.reason)}`)];
      }
      default:
        return undefined;
    }
  }
}

function rejectionSentence(event: { readonly [field: string]: unknown }): string {
  const summary = 'new configuration rejected, old one kept';
  if (typeof event.reason === 'string') return `${summary}: ${text(event.reason)}`;
  const problems: readonly unknown[] = Array.isArray(event.problems) ? event.problems : [];
  const moreText = problems.length > 1 ? ` (and ${count(problems.length - 1, 'more error')})` : '';
  return `${summary}: ${describeProblem(problems[0])}${moreText}`;
}

/** Returns text such as `routes.yaml:4: spec.hosts: must be a list, got 5`. */
function describeProblem(problem: unknown): string {
  const { place, field, message } = Object(problem) as { place?: unknown; field?: unknown; message?: unknown };
  const { file, line } = Object(place) as { file?: unknown; line?: unknown };
  const location = typeof file === 'string' ? [`${fileName(file)}${typeof line === 'number' ? `:${line}` : ''}`] : [];
  return text([...location, ...(typeof field === 'string' && field !== '' ? [field] : []), text(message)].join(': '));
}

function findingOf(index: number, sentence: string): Finding {
  return { rule: 'refused', weight: 'bad', sentence, index, range: [index, index], root: index };
}
