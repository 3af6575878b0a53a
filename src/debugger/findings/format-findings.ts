import { durationText } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { visibleLine } from '../../runtime/visible-text.ts';
import type { BrokenRule, Finding, Weight } from './finding.ts';
import type { TimePart } from './time-spent.ts';

const symbolByWeight: Readonly<Record<Weight, string>> = { bad: '✕', note: '•', fine: '✓' };
const maxParts = 4;

export function formatFindings(
  findings: readonly Finding[],
  brokenRules: readonly BrokenRule[],
  records: readonly TraceRecord[],
  prefixOf: (record: TraceRecord) => string,
): string[] {
  const lines = findings.flatMap((finding) => {
    const record = records[finding.index]!;
    const margin = ' '.repeat(prefixOf(record).length + 2);
    const timeSpentText = spentText(finding.spent ?? []);
    return [
      `${prefixOf(record)}  ${symbolByWeight[finding.weight]} ${visibleLine(finding.sentence)}`,
      ...(timeSpentText === '' ? [] : [`${margin}  ${visibleLine(timeSpentText)}`]),
    ];
  });
  const failedRuleLines = brokenRules.map(({ rule, reason }) =>
    visibleLine(`internal error in rule "${rule}", its other findings are missing: ${reason}`),
  );
  return [...(lines.length === 0 ? ['no findings'] : lines), ...failedRuleLines];
}

/** Returns text such as `1.2 s: 538 ms epoch-1/probe, 500 ms timer watchDelay of cert-watcher`. */
export function spentText(spent: readonly TimePart[]): string {
  if (spent.length === 0) return '';
  const totalMs = spent.reduce((sum, { ms }) => sum + ms, 0);
  const durations = spent.slice(0, maxParts).map(({ what, ms }) => `${durationText(ms)} ${what}`);
  return `${durationText(totalMs)}: ${durations.join(', ')}${spent.length > maxParts ? ', …' : ''}`;
}
