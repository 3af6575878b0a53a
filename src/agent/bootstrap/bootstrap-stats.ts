import * as E from 'fp-ts/lib/Either.js';
import { decimal, dictionary, nonEmptyList, refine } from '../../model/fields/decode.ts';
import { durationMsOf } from '../../model/fields/duration.ts';
import { re2Violation } from '../../model/fields/re2.ts';
import * as violation from '../../model/fields/violation.ts';
import { mustBe } from '../../model/fields/violation.ts';
import { describeFieldErrors, type ProxyConfig, type StatsMatcher } from '../../model/mesh/proxy-config.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';

export interface StatsFacts {
  readonly config: Pick<ProxyConfig, 'extraStatTags' | 'proxyStatsMatcher'>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly addresses: readonly string[];
  readonly exitOnZeroActiveConnections: boolean;
}

const listenerAddress = String.raw`((?:[_.[:digit:]]*|[_\[\]aAbBcCdDeEfF[:digit:]]*))`;
/** A name ending with `;`, as chartpilot generates it. */
const chartpilotName = String.raw`((?:[_.[:digit:]\w]*|[_\[\]aAbBcCdDeEfF[:digit:]\w\:]*))`;

const builtInTags: readonly (readonly [name: string, regex: string])[] = [
  ['cluster_name', String.raw`^cluster(\.(.+);)`],
  ['http_conn_manager_prefix', String.raw`^http\.(${chartpilotName};\.)`],
  ['thread_name', String.raw`^server(\.(.+))\.watchdog`],
  ['tcp_prefix', String.raw`^tcp\.((.*?)\.)\w+?$`],
  ['response_code', String.raw`_rq(_(\d{3}))$`],
  ['response_code_class', String.raw`_rq(_(\dxx))$`],
  ['http_conn_manager_listener_prefix', String.raw`^listener(?=\.).*?\.http\.(${listenerAddress}\.)`],
  ['listener_address', String.raw`^listener\.(${listenerAddress}\.)`],
  ['mongo_prefix', String.raw`^mongo\.(.+?)\.(collection|cmd|cx_|op_|delays_|decoding_)(.*?)$`],
];

const trailingTags: readonly (readonly [name: string, regex: string])[] = [
  ['cache', String.raw`(cache\.(.+?)\.)`],
  ['component', String.raw`(component\.(.+?)\.)`],
  ['tag', String.raw`(tag\.(.+?);\.)`],
  ['wasm_filter', String.raw`(wasm_filter\.(.+?)\.)`],
  ['authz_enforce_result', String.raw`rbac(\.(allowed|denied))`],
  ['authz_dry_run_action', String.raw`(\.istio_dry_run_(allow|deny)_)`],
  ['authz_dry_run_result', String.raw`(\.shadow_(allowed|denied))`],
];

/** Statistics that operators and this agent read; by default Envoy would keep thousands of counters. */
function requiredStatistics({
  exitOnZeroActiveConnections,
}: StatsFacts): Record<keyof StatsMatcher, readonly string[]> {
  return {
    inclusionPrefixes: [
      'cluster_manager',
      'listener_manager',
      'server',
      'cluster.xds-grpc',
      'wasm',
      'control_plane',
      // Dropped access log entries, which standard metrics lack.
      'access_logs.grpc_access_log',
    ],
    inclusionSuffixes: [
      ...['rbac.allowed', 'rbac.denied', 'shadow_allowed', 'shadow_denied'],
      ...(exitOnZeroActiveConnections ? ['downstream_cx_active', 'downstream_rq_active'] : []),
    ],
    inclusionRegexps: [String.raw`vhost\..*\.route\..*`],
  };
}

interface Findings {
  readonly errors: OptionErrors;
  readonly warnings: LogWarning[];
}

/** Invalid patterns are added to `errors`; invalid histogram buckets are only a warning, as in Istio. */
export function statsConfig(facts: StatsFacts, { errors, warnings }: Findings): Record<string, unknown> {
  const buckets = histogramBuckets(facts.annotations[annotation.buckets], warnings);
  const { extraTags, inclusion } = statsChoices(facts, errors);
  return {
    use_all_default_tags: false,
    stats_tags: [
      ...builtInTags.map(tag),
      ...extraTags.map((name) => tag([name, String.raw`(${name}=\.=(.*?);\.;)`])),
      ...trailingTags.map(tag),
    ],
    stats_matcher: { inclusion_list: { patterns: inclusionPatterns(inclusion) } },
    ...(buckets !== undefined && { histogram_bucket_settings: buckets }),
  };
}

export interface StatsChoices {
  readonly extraTags: readonly string[];
  readonly inclusion: Readonly<Record<keyof StatsMatcher, readonly string[]>>;
}

export function statsChoices(facts: StatsFacts, errors: OptionErrors): StatsChoices {
  const requiredPatterns = requiredStatistics(facts);
  const patternsOf = (field: keyof StatsMatcher): string[] => [
    ...configuredPatterns(facts, field, errors),
    ...requiredPatterns[field],
  ];
  return {
    extraTags: extraTags(facts, errors),
    inclusion: {
      inclusionPrefixes: patternsOf('inclusionPrefixes'),
      inclusionSuffixes: patternsOf('inclusionSuffixes'),
      inclusionRegexps: patternsOf('inclusionRegexps'),
    },
  };
}

const annotation = {
  extraTags: 'sidecar.istio.io/extraStatTags',
  buckets: 'sidecar.istio.io/statsHistogramBuckets',
  flush: 'sidecar.istio.io/statsFlushInterval',
  eviction: 'sidecar.istio.io/statsEvictionInterval',
} as const;

function tag([name, regex]: readonly [string, string]): Record<string, string> {
  return { tag_name: name, regex };
}

const tagNameDescription = 'a tag name of letters, digits and _ . : / -';

/** The names are not escaped in the regular expression, so special characters are errors. */
function extraTags({ config, annotations }: StatsFacts, errors: OptionErrors): string[] {
  const configuredNames: [source: string, name: string][] = [
    ...config.extraStatTags.map((name): [string, string] => ['extraStatTags', name]),
    ...commaList(annotations[annotation.extraTags]).map((name): [string, string] => [annotation.extraTags, name]),
  ];
  const names = configuredNames.filter(([source, name]) => {
    const isValid = /^[\w.:/-]+$/.test(name) && name.length <= maxPatternLength;
    if (!isValid) errors.addConfigError(source, mustBe(tagNameDescription, name));
    return isValid;
  });
  return [...new Set(names.map(([, name]) => name))];
}

/** Envoy's limit for a regular expression; the names of tags have the same limit. */
const maxPatternLength = 1024;

function inclusionPatterns({
  inclusionPrefixes,
  inclusionSuffixes,
  inclusionRegexps,
}: StatsChoices['inclusion']): Record<string, unknown>[] {
  return [
    { prefix: 'reporter=' },
    ...inclusionPrefixes.map((prefix) => ({ prefix })),
    ...inclusionSuffixes.map((suffix) => ({ suffix })),
    ...inclusionRegexps.map((regex) => ({ safe_regex: { regex } })),
    { prefix: 'component' },
    { prefix: 'istio' },
  ];
}

/** A non-empty annotation replaces the corresponding list of the mesh configuration, as in Istio. */
function configuredPatterns(
  { config, annotations, addresses }: StatsFacts,
  field: keyof StatsMatcher,
  errors: OptionErrors,
): string[] {
  const name = `sidecar.istio.io/statsI${field.slice(1)}`;
  const annotationText = annotations[name] || undefined;
  const source = annotationText === undefined ? `proxyStatsMatcher.${field}` : `annotation ${name}`;
  const patterns = annotationText === undefined ? (config.proxyStatsMatcher[field] ?? []) : commaList(annotationText);
  return patterns
    .flatMap((pattern) => expandPodIps(pattern, addresses))
    .filter((pattern) => {
      const violation = field === 'inclusionRegexps' ? re2Violation(pattern) : violationOf(pattern);
      if (violation !== undefined) errors.addConfigError(source, violation);
      return violation === undefined;
    });
}

function violationOf(pattern: string): violation.FieldViolation | undefined {
  if (pattern === '') return violation.emptyValue();
  return pattern.length > maxPatternLength ? violation.tooLarge(maxPatternLength, pattern.length) : undefined;
}

function quoteText(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}

function expandPodIps(pattern: string, addresses: readonly string[]): string[] {
  return pattern.includes('{pod_ip}') ? addresses.map((ip) => pattern.replaceAll('{pod_ip}', ip)) : [pattern];
}

function commaList(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function ignoredWarning(name: string, reason: string, value?: string): LogWarning {
  return { event: 'option.ignored', setting: `annotation ${name}`, ...(value !== undefined && { value }), reason };
}

/** Bucket bounds by prefix of the statistic, such as `{"istio": [1, 5, 10]}`. */
function histogramBuckets(json: string | undefined, warnings: LogWarning[]): object[] | undefined {
  if (json === undefined) return undefined;
  try {
    const decoded = bucketsByPrefix(JSON.parse(json), '');
    if (E.isRight(decoded)) {
      return Object.entries(decoded.right).map(([prefix, buckets]) => ({ match: { prefix }, buckets }));
    }
    warnings.push(ignoredWarning(annotation.buckets, describeFieldErrors(decoded.left)));
  } catch (error) {
    warnings.push(ignoredWarning(annotation.buckets, `must be a JSON object: ${messageOf(error)}`));
  }
  return undefined;
}

const bucketsByPrefix = refine(
  dictionary(
    refine(nonEmptyList(decimal), (bounds, path) =>
      bounds.every((bound, index) => bound > (bounds[index - 1] ?? 0))
        ? []
        : [
            violation.fieldError(
              path,
              violation.outOfRange('numbers above 0, each greater than the previous one', `[${bounds}]`),
            ),
          ],
    ),
  ),
  (buckets, path) =>
    Object.hasOwn(buckets, '')
      ? [violation.fieldError(path, violation.disallowedValue('must not have an empty prefix'))]
      : [],
);

export function statsIntervals(
  annotations: Readonly<Record<string, string>>,
  { warnings }: Pick<Findings, 'warnings'>,
): Record<string, string> {
  const flushMs = interval(annotation.flush, annotations, warnings);
  const evictionMs = interval(annotation.eviction, annotations, warnings);
  // Envoy's default flush interval is 5 s.
  const isMultiple = evictionMs !== undefined && evictionMs % (flushMs ?? 5_000) === 0;
  if (evictionMs !== undefined && !isMultiple) {
    warnings.push(ignoredWarning(annotation.eviction, 'must be a multiple of the flush interval', `${evictionMs}ms`));
  }
  return {
    ...(flushMs !== undefined && { stats_flush_interval: `${flushMs / 1000}s` }),
    ...(isMultiple && { stats_eviction_interval: `${evictionMs / 1000}s` }),
  };
}

/** Envoy accepts 1 ms to 5 minutes. */
function interval(
  name: string,
  annotations: Readonly<Record<string, string>>,
  warnings: LogWarning[],
): number | undefined {
  const text = annotations[name];
  if (text === undefined) return undefined;
  const ms = durationMsOf(text.trim());
  if (ms !== undefined && Number.isInteger(ms) && ms >= 1 && ms <= maxIntervalMs) return ms;
  warnings.push(ignoredWarning(name, 'must be a duration from 1ms to 5m', quoteText(text)));
  return undefined;
}

const maxIntervalMs = 300_000;
