/**
 * `npm run test:bootstrap-leaves -- [--istio VERSION]`: renders Istio's bootstrap template with our values, and compares each leaf with our bootstrap
 * for the same inputs. Fails for a difference without a reason in {@link expected}, and for a reason without a difference. Reads the template from
 * the module in Go's proxy, a download of 30 MB, without storing it. Needs `go`.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { isObject } from '../../src/runtime/json-object.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';

interface Input {
  readonly name: string;
  readonly args?: readonly string[];
  readonly config?: object;
  readonly env?: Readonly<Record<string, string>>;
}

const inputs: readonly Input[] = [
  { name: 'sidecar' },
  { name: 'incremental', args: ['--delta'] },
  { name: 'IPv6', args: ['--instanceIPs', 'fd00::1'] },
  { name: 'dual stack', args: ['router', '--instanceIPs', '10.0.0.1,fd00::1'], env: { ISTIO_DUAL_STACK: 'true' } },
  {
    name: 'telemetry',
    config: {
      tracing: { zipkin: { address: 'zipkin:9411' } },
      statsdUdpAddress: '10.0.0.1:8125',
      envoyMetricsService: { address: 'metrics:1', tlsSettings: { mode: 'ISTIO_MUTUAL' }, tcpKeepalive: { probes: 3 } },
      envoyAccessLogService: { address: 'log:2' },
      runtimeValues: { a: 'true', b: '3' },
      extraStatTags: ['mine'],
    },
  },
  { name: 'Datadog', config: { tracing: { datadog: { address: 'datadog:8126' } } } },
  { name: 'Lightstep', config: { tracing: { lightstep: { address: 'lightstep:1', accessToken: 'x' } } } },
  { name: 'connections', config: { connectionSettings: { globalDownstreamConnectionLimit: 9 } } },
];

/** Paths that may differ, with the reason; docs/compatibility.md has the same rows. */
const expected: readonly (readonly [leaf: RegExp, reason: string])[] = [
  [/^application_log_config\./, 'the format is on the command line'],
  [/^deferred_stat_options\./, 'all statistics exist from the start'],
  [
    /^dynamic_resources\.ads_config\.grpc_services\[0\]\.(envoy_grpc\.retry_policy|initial_metadata)/,
    'shorter pauses, names the epoch',
  ],
  [/^static_resources\.listeners\[[^\]]*\]\.name$/, 'names that describe the purpose of the listener'],
  [/^tracing\.http\./, 'Lightstep by OpenTelemetry: Envoy has removed its extension'],
];

/** Values from Istio's Go code, which the template lacks. */
const flagsOfIstio = /runtimeFlags := map\[string\]any\{([\s\S]*?)\n\t\}/;

type Leaves = Map<string, string>;

/**
 * List elements are identified by their names, listeners by their ports, because Istio names listeners differently. The
 * default protocol is TCP.
 */
function leavesOf(value: unknown, path = '', leaves: Leaves = new Map()): Leaves {
  const children: readonly (readonly [string, unknown])[] = Array.isArray(value)
    ? value.map((item, index) => [`${path}[${idOf(path, item) ?? index}]`, item])
    : isObject(value)
      ? Object.entries(value).map(([key, item]) => [path === '' ? snake(key) : `${path}.${snake(key)}`, item])
      : [];
  if (children.length === 0) leaves.set(path, JSON.stringify(value));
  for (const [at, child] of children) if (!(at.endsWith('.protocol') && child === 'TCP')) leavesOf(child, at, leaves);
  return leaves;
}

function idOf(path: string, item: unknown): string | undefined {
  if (!isObject(item)) return undefined;
  if (path === 'static_resources.listeners') {
    return /"port_value":(\d+)/.exec(JSON.stringify(item.address))?.[1];
  }
  const name = item.name ?? item.tag_name;
  return typeof name === 'string' ? name : undefined;
}

function snake(key: string): string {
  return key.startsWith('@') || key.includes('.')
    ? key
    : key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

async function bootstrapOf({ args = [], config, env }: Input, template?: string): Promise<object> {
  const extraArgs = [...args, ...(template === undefined ? [] : ['--templateFile', template])];
  const { stdout } = await execa(join(packageRoot(), 'bin/pilot-agent'), ['bootstrap', ...extraArgs], {
    env: { ...env, ...(config && { PROXY_CONFIG: JSON.stringify(config) }) },
  });
  return JSON.parse(stdout) as object;
}

async function istio(version: string, cache: string): Promise<string> {
  const { stdout } = await execa('go', ['mod', 'download', '-json', `istio.io/istio@${version}`], {
    env: { GOMODCACHE: cache, GOFLAGS: '-mod=mod -modcacherw', GONOSUMDB: 'istio.io/*' },
    cwd: cache,
  });
  const { Dir, Version } = JSON.parse(stdout) as { readonly Dir: string; readonly Version: string };
  console.log(`istio.io/istio ${Version}`);
  return Dir;
}

function flagDifferences(code: string, ourValues: Readonly<Record<string, unknown>>): string[] {
  const lines = (flagsOfIstio.exec(code)?.[1] ?? '').split('\n');
  const istioValues = new Map(
    lines.flatMap((line) => {
      const [, flag, value] = /^\s*"([^"]+)":\s*(.+),$/.exec(line) ?? [];
      return flag === undefined ? [] : [[flag, value!] as const];
    }),
  );
  if (istioValues.size === 0) return ['runtime flags: not found in pkg/bootstrap/config.go'];
  const names = new Set([...istioValues.keys(), ...Object.keys(ourValues)]);
  return [...names].flatMap((flag) => {
    const [ownValue, other] = [JSON.stringify(ourValues[flag]), istioValues.get(flag)];
    return ownValue === other ? [] : [`runtime flag ${flag}: ours ${ownValue}, Istio's ${other}`];
  });
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { istio: { type: 'string', default: 'latest' } } });
  const cache = mkdtempSync(join(tmpdir(), 'chartpilot-istio-'));
  try {
    const folder = await istio(values.istio, cache);
    const template = join(folder, 'tools/packaging/common/envoy_bootstrap.json');
    const unexplained = new Set<string>();
    const seenPatterns = new Set<RegExp>();
    let compared = 0;
    for (const input of inputs) {
      const ourValues = await bootstrapOf(input);
      const [ownLeaves, istioLeaves] = [leavesOf(ourValues), leavesOf(await bootstrapOf(input, template))];
      for (const path of new Set([...ownLeaves.keys(), ...istioLeaves.keys()])) {
        compared++;
        // The node is an input.
        if (path.startsWith('node.') || ownLeaves.get(path) === istioLeaves.get(path)) continue;
        const reason = expected.find(([leaf]) => leaf.test(path));
        if (reason === undefined)
          unexplained.add(`${input.name}: ${path}: ours ${ownLeaves.get(path)}, Istio's ${istioLeaves.get(path)}`);
        else seenPatterns.add(reason[0]);
      }
      if (input.config !== undefined) continue;
      const { layered_runtime: runtime } = ourValues as {
        readonly layered_runtime: { readonly layers: readonly { readonly static_layer?: object }[] };
      };
      const code = readFileSync(join(folder, 'pkg/bootstrap/config.go'), 'utf8');
      for (const text of flagDifferences(code, { ...runtime.layers[0]?.static_layer })) unexplained.add(text);
    }
    for (const [leaf, reason] of expected)
      if (!seenPatterns.has(leaf)) unexplained.add(`no difference at ${leaf}: ${reason}`);
    for (const text of unexplained) console.log(text);
    console.log(`${inputs.length} bootstraps, ${compared} leaves, ${unexplained.size} unexplained differences`);
    return unexplained.size === 0 ? 0 : 1;
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
}

process.exitCode = await main();
