/** Names of metrics and labels in a PromQL query, limited to the syntax that chartpilot's queries use. */

export interface UsedMetric {
  readonly name: string;
  readonly labels: readonly string[];
}

export interface NamesInQuery {
  readonly metrics: readonly UsedMetric[];
  /** Labels of `by`, `on` and similar clauses, which may belong to any of the metrics. */
  readonly grouping: readonly string[];
}

const keywords = new Set([
  ...['by', 'without', 'on', 'ignoring', 'group_left', 'group_right', 'and', 'or', 'unless', 'bool', 'offset'],
]);

/** @throws Error if the query has text of no known form */
export function namesIn(query: string): NamesInQuery {
  const metrics: UsedMetric[] = [];
  const grouping: string[] = [];
  // Durations, strings and numbers contain letters that are not names.
  let remainingQuery = query.replace(/\[[^\]]*\]/g, ' ');
  remainingQuery = remainingQuery.replace(
    /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g,
    (_, list: string) => {
      grouping.push(...list.split(',').flatMap((label) => label.trim() || []));
      return ' ';
    },
  );
  remainingQuery = remainingQuery.replace(
    /([a-zA-Z_:][\w:]*)\s*\{((?:[^{}"]|"(?:[^"\\]|\\.)*")*)\}/g,
    (_, name: string, matchers: string) => {
      const bareMatchers = matchers.replace(/"(?:[^"\\]|\\.)*"/g, '""');
      metrics.push({ name, labels: [...bareMatchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!) });
      return ' ';
    },
  );
  remainingQuery = remainingQuery.replace(/"(?:[^"\\]|\\.)*"/g, ' ').replace(/\b\d+(?:\.\d+)?(?:e\d+)?\b/g, ' ');
  for (const [, name = '', parenthesis] of remainingQuery.matchAll(/([a-zA-Z_:][\w:]*)\s*(\()?/g)) {
    if (parenthesis === undefined && !keywords.has(name)) metrics.push({ name, labels: [] });
  }
  if (metrics.length === 0) throw new Error(`no metric in ${query}`);
  return { metrics, grouping };
}

/** Name of the metric that a sample belongs to: `x_bucket` is a sample of `x`. */
export function familyOf(name: string, isKnown: (name: string) => boolean): string {
  return isKnown(name) ? name : name.replace(/_(?:bucket|sum|count)$/, '');
}
