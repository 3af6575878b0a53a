/** Go templates of the injector in the thread that executes them, compared with native Go and sprig. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as E from 'fp-ts/lib/Either.js';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  GoTemplateThread,
  installedGoTemplates,
} from '../../src/discovery/webhooks/go-templates/go-template-thread.ts';
import { injectPod } from '../../src/injection/inject.ts';
import { defaultInjectionConfig } from '../../src/injection/settings.ts';
import type { GoTemplateCall } from '../../src/injection/template/go-template.ts';
import { goTemplatesPackage, withGoTemplates } from '../../src/injection/template/go-template.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { findOrBuild, goTemplates } from '../cluster/go-program.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { appPod, containerOf, injectionRequest } from '../injection/given-injection.ts';
import { type Rendered, renderWithGo } from './go-oracle.ts';
import { randomInjectionTemplates } from './random-injection-templates.ts';

const buildLimitMs = 600_000;
/** Limits for a busy machine, where the first execution of a thread takes seconds. */
const patient = { renderMs: 120_000, startMs: 120_000 };

const data = {
  typeMeta: { kind: 'Deployment', apiVersion: 'apps/v1' },
  deploymentMeta: { name: 'web', namespace: 'shop' },
  objectMeta: {
    ...{ name: 'web-1', labels: { app: 'web', 'a.b/c': 'x' } },
    annotations: { port: '8080', json: '{"a": [1, 2]}', 'sidecar.istio.io/logLevel': 'debug' },
  },
  spec: {
    serviceAccountName: 'web',
    containers: [
      { name: 'app', image: 'web:1', ports: [{ containerPort: 80 }, { containerPort: 81, protocol: 'UDP' }] },
      { name: 'istio-proxy', image: 'auto', ports: [{ containerPort: 82, protocol: 'TCP' }] },
    ],
    securityContext: { runAsUser: 1000 },
  },
  proxyConfig: {
    ...{ concurrency: 2, statusPort: 15020, terminationDrainDuration: '5s', proxyMetadata: { A: 'b' } },
    holdApplicationUntilProxyStarts: true,
  },
  meshConfig: { trustDomain: 'cluster.local', enablePrometheusMerge: true, accessLogFile: '/dev/stdout' },
  values: { global: { hub: 'example.com', tag: '1', port: 15020, list: ['b', 'a'], nested: { x: null, y: true } } },
  revision: 'canary',
  proxyUID: 1337,
};

const call = (template: string, name = 'templates'): GoTemplateCall => ({
  ...{ name, template, data },
  proxyDefaults: { statusPort: 15020, terminationDrainDuration: '5s' },
});

let thread: GoTemplateThread;
let wasm: string;

beforeAll(async () => {
  wasm = await findOrBuild(goTemplates, () => {});
  thread = new GoTemplateThread(wasm, patient);
}, buildLimitMs);

afterAll(() => thread.close());

async function rendered(template: string): Promise<Rendered> {
  const result = await thread.render(call(template));
  return E.isRight(result) ? { output: result.right } : { error: result.left.map(({ message }) => message).join() };
}

const count = sized({ quick: 100, short: 100, full: 5_000 });

test(`the injector renders ${count} random templates as native Go with sprig does, including errors`, {
  timeout: buildLimitMs,
}, async () => {
  const templates = randomInjectionTemplates(count, 40);
  const gos = await renderWithGo(templates.map((template) => ({ template, data, injection: true })));
  const different: object[] = [];
  for (const [index, template] of templates.entries()) {
    const ownResult = await rendered(template);
    const go = gos[index]!;
    const isSameResult =
      'output' in go
        ? 'output' in ownResult && ownResult.output === go.output
        : 'error' in ownResult && ownResult.error === go.error;
    if (!isSameResult) different.push({ template, ours: ownResult, go });
  }
  expect(different.slice(0, 5)).toEqual([]);
  expect(gos.filter((one) => 'output' in one && one.output !== '').length).toBeGreaterThan(count / 2);
});

test.each([
  ['annotation', '{{ annotation .ObjectMeta "port" 1 }} {{ annotation .ObjectMeta "none" 15020 }}', '8080 15020'],
  [
    'valueOrDefault',
    '{{ valueOrDefault .Values.none "x" }}{{ valueOrDefault "" "y" }}{{ valueOrDefault 0 "z" }}',
    'xy0',
  ],
  ['isset', '{{ isset .ObjectMeta.Annotations `port` }} {{ isset .ObjectMeta.Labels `port` }}', 'true false'],
  ['toJSON', '{{ toJSON .ObjectMeta.Labels }} {{ toJSON .Spec.NodeSelector }}', '{"a.b/c":"x","app":"web"} {}'],
  ['fromJSON', '{{ index (fromJSON .ObjectMeta.Annotations.json).a 1 }}', '2'],
  ['structToJSON', '{{ structToJSON .Spec.SecurityContext }} {{ structToJSON nil }}', '{"runAsUser":1000} {}'],
  [
    'protoToJSON',
    '{{ protoToJSON .ProxyConfig }}',
    '{"concurrency":2,"proxyMetadata":{"A":"b"},"holdApplicationUntilProxyStarts":true}',
  ],
  ['toYaml', '{{ toYaml .Values.global.list }}', '- b\n- a\n'],
  ['indent', '{{ "a\\nb\\nc" | indent 2 }}', 'a\n  b\n  c'],
  ['contains', '{{ contains "ea" "heap" }} {{ contains "heap" "ea" }}', 'true false'],
  ['toLower', '{{ toLower "ABC" }}', 'abc'],
  ['directory', '{{ directory "/etc/istio/file.json" }}', '/etc/istio/'],
  ['formatDuration', '{{ formatDuration .ProxyConfig.TerminationDrainDuration }}', '5s'],
  ['env', '{{ env "PATH" "default" }}', 'default'],
  [
    'excludeInboundPort',
    '{{ excludeInboundPort 15020 "1, 2" }} {{ excludeInboundPort 0 "1" }} {{ excludeInboundPort 1 "1,2" }}',
    '1,2,15020 1 1,2',
  ],
  ['includeInboundPorts', '{{ includeInboundPorts .Spec.Containers }}', '80,82'],
  ['applicationPorts', '{{ applicationPorts .Spec.Containers }}', '80'],
  ['kubevirtInterfaces, excludeInterfaces', '{{ kubevirtInterfaces "a" }}{{ excludeInterfaces "b" }}', 'ab'],
  [
    'appendMultusNetwork',
    '{{ appendMultusNetwork "" "n" }} {{ appendMultusNetwork "a" "n" }} {{ appendMultusNetwork "a, n" "n" }}',
    'n a, n a, n',
  ],
  ['appendMultusNetwork of JSON', '{{ appendMultusNetwork `[{"name": "a"}]` "n" }}', '[{"name": "a"}, {"name":"n"}]'],
  [
    'omit, omitNil',
    '{{ toJson (omit .Values.global.nested "y") }} {{ toJson (omitNil .Values.global.nested) }}',
    '{"x":null} {"y":true}',
  ],
  ['strdict, mergeMaps', '{{ toJSON (mergeMaps (strdict "a" "1") (strdict "b" "2" "a" "3")) }}', '{"a":"3","b":"2"}'],
  ['toJsonMap', '{{ toJsonMap "a" "1" }}', '{"a":"1"}'],
  ['otelResourceAttributes', '{{ otelResourceAttributes "a" "1" "b" "2" }}', 'a=1,b=2'],
  [
    'fields of Go types',
    '{{ .DeploymentMeta.Name }} {{ .TypeMeta.Kind }} {{ .ProxyConfig.HoldApplicationUntilProxyStarts.GetValue }} {{ .MeshConfig.TrustDomain }} {{ .Revision }} {{ .ProxyUID }}',
    'web Deployment true cluster.local canary 1337',
  ],
  ['numbers of values', '{{ .Values.global.port }}', '15020'],
])('templates can use %s (injection §2.2)', async (_, template, output) => {
  expect(await rendered(template)).toEqual({ output });
});

test.each(['expandenv', 'getHostByName', 'genPrivateKey', 'genCA', 'derivePassword', 'encryptAES', 'bcrypt'])(
  'the sprig function %s, which reads the environment or the network or creates keys, is unavailable (injection §2.2)',
  async (name) => {
    expect(await rendered(`{{ ${name} }}`)).toEqual({
      error: expect.stringContaining(`function "${name}" not defined`),
    });
  },
);

test.each([
  [
    'a template with a list that is too long',
    '{{ range until 100000000 }}{{ range until 100000000 }}{{ end }}{{ end }}',
    /192 MiB of memory/,
  ],
  [
    'a text that doubles',
    '{{ $s := "x" }}{{ range until 60 }}{{ $s = print $s $s }}{{ end }}{{ len $s }}',
    /192 MiB of memory/,
  ],
  [
    'a recursion without end',
    '{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}',
    /exceeded maximum template depth|192 MiB of memory/,
  ],
  ['a template with an output that is too long', '{{ range until 300000 }}xxxxxxxxxx{{ end }}', /output is too long/],
])(
  '%s is rejected, and the next template is still executed',
  { timeout: buildLimitMs },
  async (_, template, message) => {
    const limitedThread = new GoTemplateThread(wasm, { ...patient, maxMebibytes: 192 });
    try {
      const result = await limitedThread.render(call(template, 'mine'));
      expect(E.isLeft(result) && result.left).toEqual([
        expect.objectContaining({ path: 'templates.mine', message: expect.stringMatching(message) }),
      ]);
      expect(await limitedThread.render(call('{{ .Revision }}'))).toEqual(E.right('canary'));
    } finally {
      await limitedThread.close();
    }
  },
);

test('an endless loop is stopped at its limit, and the next template is still executed', {
  timeout: buildLimitMs,
}, async () => {
  const limitedThread = new GoTemplateThread(wasm, { ...patient, renderMs: 2_000 });
  try {
    const result = await limitedThread.render(call('{{ range 1000000000000 }}{{ end }}', 'mine'));
    expect(E.isLeft(result) && result.left[0]).toMatchObject({
      ...{ path: 'templates.mine', message: 'did not end within 2000 ms' },
    });
    // On a busy machine the first execution of a thread exceeds the limit.
    await eventually('the next one is executed', async () =>
      E.isRight(await limitedThread.render(call('{{ .Revision }}'))),
    );
  } finally {
    await limitedThread.close();
  }
});

test('the number of waiting executions is limited', async () => {
  const limitedThread = new GoTemplateThread(wasm, { ...patient, maxWaiting: 2 });
  try {
    const all = await Promise.all(Array.from({ length: 4 }, () => limitedThread.render(call('{{ .Revision }}'))));
    expect(all.map((one) => E.isRight(one))).toEqual([true, true, true, false]);
  } finally {
    await limitedThread.close();
  }
});

test('templates are rejected with an error that names the file if it is not the WebAssembly of the package', async () => {
  const brokenThread = new GoTemplateThread(join(packageRoot(), 'package.json'));
  const result = await brokenThread.render(call('x', 'mine'));
  expect(E.isLeft(result) && result.left[0]).toMatchObject({
    ...{ path: 'templates.mine', message: expect.stringMatching(/package\.json: is not WebAssembly/) },
  });
});

test("the WebAssembly package is found in the program's node_modules", () => {
  const root = mkdtempSync(join(tmpdir(), 'go-templates-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  writeFileSync(join(root, 'package.json'), '{"name": "chartpilot"}');
  expect(installedGoTemplates(root)).toBeUndefined();
  const folder = join(root, 'node_modules', goTemplatesPackage);
  mkdirSync(folder, { recursive: true });
  symlinkSync(join(packageRoot(), 'packages/go-templates/package.json'), join(folder, 'package.json'));
  symlinkSync(wasm, join(folder, 'go-templates.wasm'));
  expect(installedGoTemplates(root)).toBeDefined();
});

const ownTemplate = `
metadata:
  annotations: { owner: {{ .DeploymentMeta.Name | quote }} }
spec:
  containers:
  {{- range .Spec.Containers }}
  - name: {{ .Name }}
    env: [{ name: TAG, value: {{ $.Values.global.tag | quote }} }]
  {{- end }}
`;
const goSettings = {
  ...injectionRequest(appPod()).settings,
  config: { ...defaultInjectionConfig, goTemplates: { mine: ownTemplate } },
  writtenValues: { global: { tag: '9' } },
};
const annotatedPod = appPod({ 'inject.istio.io/templates': 'sidecar,mine' });

test('a pod gets the output of its Go templates, and a second injection changes nothing', async () => {
  const inject = (pod: ReturnType<typeof appPod>) =>
    withGoTemplates({ ...injectionRequest(pod, {}, { settings: goSettings }), goTemplates: thread }, (request) =>
      injectPod(request),
    );
  const firstResult = await inject(annotatedPod);
  if (E.isLeft(firstResult)) throw new Error(JSON.stringify(firstResult.left));
  expect(firstResult.right.metadata.annotations).toMatchObject({ owner: 'p' });
  expect(containerOf(firstResult.right, 'app').env).toEqual([{ name: 'TAG', value: '9' }]);
  expect(containerOf(firstResult.right)).toMatchObject({ name: 'istio-proxy', image: 'example.com/mesh/proxyv2:1.0' });
  expect(await inject(firstResult.right)).toEqual(firstResult);
});

test('without the package a pod that names a Go template is rejected with the name of the package, while others are injected', () => {
  const rejectedResult = injectPod(injectionRequest(annotatedPod, {}, { settings: goSettings }));
  expect(E.isLeft(rejectedResult) && rejectedResult.left).toEqual([
    expect.objectContaining({ path: 'templates.mine', message: expect.stringContaining(goTemplatesPackage) }),
  ]);
  expect(E.isRight(injectPod(injectionRequest(appPod(), {}, { settings: goSettings })))).toBe(true);
});
