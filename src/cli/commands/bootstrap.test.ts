/**
 * The dry run writes the configuration with which `proxy` would start Envoy, and starts no process.
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { programFile } from '../../../test/harness/program-files.ts';

function folder(files: Readonly<Record<string, string>>): string {
  const runFolder = temporaryFolder();
  onTestFinished(() => runFolder[Symbol.dispose]());
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(runFolder.path, path, '..'), { recursive: true });
    writeFileSync(join(runFolder.path, path), content);
  }
  return runFolder.path;
}

async function run(cwd: string, args: string[], env: Record<string, string> = {}) {
  const program = programFile('pilot-agent');
  const execOptions = { cwd, env: { PATH: process.env.PATH, ...env }, extendEnv: false, reject: false } as const;
  return execa(process.execPath, [program, 'bootstrap', ...args], execOptions);
}

test('pilot-agent bootstrap applies every flag to the bootstrap, and writes no other file', async () => {
  const cwd = folder({
    'config.yaml': 'tracing: {datadog: {address: "$(HOST_IP):8126"}}\nextraStatTags: [mine]\n',
    'pod/labels': 'app="web"\nistio-locality="r.z.s"\npod-template-hash="1"\n',
    'pod/annotations': 'sidecar.istio.io/statsInclusionPrefixes="x"\n',
  });
  const flags = [
    ...['--proxyConfig', 'config.yaml', '--podInfoDir', 'pod', '--nodeId', 'router~10.0.0.9~gw-0.edge~edge.svc'],
    ...['--instanceIPs', '10.0.0.9,2001:db8::9', '--pilotSAN', 'a,b', '--outlierLogPath', '/dev/null'],
    ...['--stsPort', '15463', '--platformMetadata', '{"gcp_project":"p"}', '--out', 'out.json'],
  ];
  const env = { POD_NAME: 'gw-0', POD_NAMESPACE: 'edge', HOST_IP: '10.0.0.1', ISTIO_META_CLUSTER_ID: 'c=1' };
  const { exitCode, stdout, stderr } = await run(cwd, flags, env);
  expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  const bootstrap = JSON.parse(readFileSync(join(cwd, 'out.json'), 'utf8'));
  expect(bootstrap.node).toMatchObject({
    id: 'router~10.0.0.9~gw-0.edge~edge.svc',
    cluster: 'web.edge',
    locality: { region: 'r', zone: 'z', sub_zone: 's' },
    metadata: {
      PROXY_CONFIG: { extraStatTags: ['mine'], discoveryAddress: 'istiod.istio-system.svc:15012' },
      LABELS: { app: 'web', 'istio-locality': 'r.z.s' },
      CLUSTER_ID: 'c=1',
      INSTANCE_IPS: '10.0.0.9,2001:db8::9',
      NAMESPACE: 'edge',
      NAME: 'gw-0',
      STS_PORT: '15463',
      PILOT_SAN: ['a', 'b'],
      OUTLIER_LOG_PATH: '/dev/null',
      PLATFORM_METADATA: { gcp_project: 'p' },
    },
  });
  expect(bootstrap.cluster_manager).toEqual({ outlier_detection: { event_log_path: '/dev/null' } });
  expect(JSON.stringify(bootstrap.static_resources.clusters)).toContain('"address":"10.0.0.1","port_value":8126');
  expect(bootstrap.stats_config.stats_matcher.inclusion_list.patterns).toContainEqual({ prefix: 'x' });
  expect(readdirSync(cwd).sort()).toEqual(['config.yaml', 'out.json', 'pod']);
});

test('pilot-agent bootstrap does not replace an output file that is a pipe, a device or a link', async () => {
  const cwd = folder({ 'target.json': '' });
  const args = ['sidecar', '--instanceIPs', '10.0.0.9', '--out'];
  symlinkSync('target.json', join(cwd, 'link.json'));
  expect(await run(cwd, [...args, 'link.json'])).toMatchObject({ exitCode: 0 });
  expect(lstatSync(join(cwd, 'link.json')).isSymbolicLink()).toBe(true);
  const wholeText = readFileSync(join(cwd, 'target.json'), 'utf8');
  expect(JSON.parse(wholeText)).toHaveProperty('node');

  const pipe = join(cwd, 'pipe');
  await execa('mkfifo', [pipe]);
  const [, read] = await Promise.all([run(cwd, [...args, pipe]), execa('cat', [pipe])]);
  expect(read.stdout).toBe(wholeText.trimEnd());
  expect(lstatSync(pipe).isFIFO()).toBe(true);
});

test('pilot-agent bootstrap reports all errors with file, line and field, and writes nothing', async () => {
  const cwd = folder({
    'config.yaml': 'statusPort: many\ntracing:\n  sampling: .nan\n  zipkin: {adress: "z:1"}\nproxyMetadata: {A: 1}\n',
  });
  const args = ['--proxyConfig', 'config.yaml', '--nodeId', 'me', '--instanceIPs', 'x', '--platformMetadata', '[]'];
  const { exitCode, stdout, stderr } = await run(cwd, args, { PROXY_CONFIG: 'a: 1\nconcurrency: -1' });
  expect({ exitCode, stdout }).toEqual({ exitCode: 255, stdout: '' });
  for (const expectedText of [
    'config.yaml:1: statusPort: must be an integer, got "many"',
    'config.yaml:5: proxyMetadata.A: must be a string, got 1: put it in quotes',
    'PROXY_CONFIG:1: a: unknown field',
    'PROXY_CONFIG:2: concurrency: must be from 0 to 1024, got -1',
    '--nodeId: must be TYPE~ADDRESS~NAME~DOMAIN with TYPE sidecar or router, got "me"',
    '--instanceIPs: must be a list of IP addresses, got "x"',
    '--platformMetadata: must be a map',
    ' [CONFIG_INVALID]',
  ]) {
    expect(stderr).toContain(expectedText);
  }
});

/** An Envoy that stores its configuration file and exits. */
const envoyThatKeepsItsFile = `#!/bin/sh
case "$*" in *--hot-restart-version*) echo 11.104; exit 0;; esac
while [ $# -gt 0 ]; do [ "$1" = -c ] && cp "$2" "$KEEP"; shift; done
`;

test('pilot-agent bootstrap prints the exact configuration with which `proxy` starts Envoy', async () => {
  const cwd = folder({ envoy: envoyThatKeepsItsFile, 'etc/istio/pod/labels': 'app="web"\n' });
  chmodSync(join(cwd, 'envoy'), 0o700);
  const flags = ['--discoveryAddress', '127.0.0.1:15010', '--proxyAdminPort', '15999', '--baseId', '77'];
  const binary = join(cwd, 'envoy');
  const otherFlags = [
    '--binaryPath',
    binary,
    '--configPath',
    'generated',
    '--runDir',
    'run',
    '--hotRestart',
    'off',
    '--restartPolicy',
    'exit',
  ];
  const env = { ISTIO_META_X: 'y', PROXY_CONFIG: '{statusPort: 0, extraStatTags: [a]}' };
  const dry = await run(cwd, [...flags, ...otherFlags], env);
  const program = programFile('pilot-agent');
  const keptPath = join(cwd, 'kept.json');
  await execa(process.execPath, [program, 'proxy', ...flags, ...otherFlags], {
    cwd,
    env: { PATH: process.env.PATH, ...env, KEEP: keptPath },
    extendEnv: false,
    reject: false,
  });
  expect(readFileSync(keptPath, 'utf8')).toBe(`${dry.stdout}\n`);
});

test('pilot-agent bootstrap reports unknown flags and values on standard error, like `proxy`', async () => {
  const { exitCode, stderr } = await run(folder({}), ['--delta=maybe', '--noSuchFlag', '1', '--out', 'out.json']);
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(/^pilot-agent: warning: unknown flags ignored .*--delta=maybe.*--noSuchFlag/);
});
