import { fromBinary, toJson } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { TypedStructSchema } from '../../../gen/udpa/type/v1/typed_struct_pb.ts';
import { connectionLabels, requestLabels } from '../../../model/standard-metrics/standard-metrics.ts';
import { statsLog } from './stats-log.ts';

const workloadLabels = { namespace: 'shop', service: 'web', revision: 'v1', app: 'web', version: '', cluster: '100%' };

interface Metric {
  readonly stat: { readonly name: string; readonly tags: { name: string; value_format: string; rules?: object }[] };
}

function configOf(...of: Parameters<typeof statsLog>): { counters: Metric[]; histograms: Metric[]; text: string } {
  const { value } = toJson(
    TypedStructSchema,
    fromBinary(TypedStructSchema, statsLog(...of).configType.value.value),
  ) as unknown as {
    value: { counters: Metric[]; histograms: Metric[] };
  };
  return { ...value, text: JSON.stringify(value) };
}

const tagsOf = ({ stat }: Metric): Record<string, string> =>
  Object.fromEntries(stat.tags.map((tag) => [tag.name, tag.value_format]));

test('the stats logger has all labels, evaluates no regular expressions, and has a limited size', () => {
  const { counters, histograms, text } = configOf('http', 'outbound', { rules: {}, expressions: [] }, workloadLabels);
  expect([...counters, ...histograms].map(({ stat }) => stat.name)).toEqual([
    'requests_total',
    'request_duration_milliseconds',
    'request_bytes',
    'response_bytes',
  ]);
  expect(Object.keys(tagsOf(counters[0]!))).toEqual([...connectionLabels, ...requestLabels]);
  expect(tagsOf(counters[0]!)).toMatchObject({
    source_canonical_service: 'web',
    source_version: 'unknown',
    source_cluster: '100%%',
  });
  expect(text).not.toMatch(/\bre\.|matches|regex|google_re2/);
  expect(text).toContain('"max_counters":2000,"max_histograms":500');
});

test('a TCP connection is counted once, when it ends', () => {
  const { counters, histograms } = configOf('tcp', 'inbound', { rules: {}, expressions: [] }, workloadLabels);
  expect(counters.map(({ stat }) => stat.name)).toEqual([
    'tcp_connections_closed_total',
    'tcp_sent_bytes_total',
    'tcp_received_bytes_total',
  ]);
  expect(histograms).toEqual([]);
  expect(tagsOf(counters[0]!)).toMatchObject({
    reporter: 'destination',
    destination_workload_namespace: 'shop',
    request_protocol: 'tcp',
  });
});

test('Telemetry objects disable metrics, and remove and set labels', () => {
  const rules = {
    REQUEST_SIZE: { disabled: true as const },
    REQUEST_COUNT: { removed: ['response_flags'], set: { verb: { tag: 0 }, mesh: { text: '5%' } } },
  };
  const { counters, histograms } = configOf(
    'http',
    'outbound',
    { rules, expressions: ['request.method'] },
    workloadLabels,
  );
  expect(histograms.map(({ stat }) => stat.name)).not.toContain('request_bytes');
  const tags = tagsOf(counters[0]!);
  expect(tags).toMatchObject({ verb: '%CEL(request.method)%', mesh: '5%%' });
  expect(tags).not.toHaveProperty('response_flags');
  expect(counters[0]!.stat.tags.find(({ name }) => name === 'verb')).toHaveProperty('rules');
  expect(tagsOf(histograms[0]!)).toHaveProperty('response_flags');
});
