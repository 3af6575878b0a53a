/**
 * The blocks of docs/install.md that need a choice of the user (registry, and all below Upgrade), on a real node that pulls from a registry: nightly.
 * `npm run demo:cluster` runs the other ones.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findExecutable } from '../../src/runtime/files/executable.ts';
import { packageRoot, packageVersion } from '../../src/runtime/package-root.ts';
import { findOrBuild, helm } from '../cluster/go-program.ts';
import { writeKubeconfig } from '../cluster/mesh-objects.ts';
import { DemoTerminal } from '../demo/terminal.ts';
import { eventually } from '../harness/eventually.ts';
import { installPackages } from '../harness/install-packages.ts';
import { Program } from '../harness/program.ts';
import { isFull } from '../harness/size-of-run.ts';
import { startClusterDns } from './cluster-dns.ts';
import { buildMeshImages } from './mesh-image.ts';
import { type RunningNode, startNode } from './start-node.ts';
import { podsOf } from './workloads.ts';

/** At the loopback address of the node: containerd pulls from there without TLS. */
const registry = '127.0.0.1:5000';
const images = `${registry}/chartpilot`;
const [version, nextVersion] = [packageVersion(), 'next'];
const limitMs = 1_800_000;
const page = readFileSync(join(packageRoot(), 'docs/install.md'), 'utf8');
let node: RunningNode;
let terminal: DemoTerminal;

function blockOf(name: string): string {
  const [, text] = new RegExp(`^\`\`\`sh ${name}\n(.*?)^\`\`\``, 'ms').exec(page) ?? [];
  if (text === undefined) throw new Error(`docs/install.md has no block ${name}`);
  return text;
}

/**
 * Runs the commands of a block, with the values that a user chooses.
 * @param tag tag of the images; default: that of the page
 * @returns the output of the last command
 */
async function run(name: string, tag = version): Promise<string> {
  const text = blockOf(name)
    .replaceAll('REGISTRY', registry)
    .replaceAll('TAG', tag)
    .replaceAll(`:${version}`, `:${tag}`);
  let output = '';
  for (const command of text.trim().split('\n')) output = await terminal.run(command);
  return output;
}

interface PodContainers {
  readonly containers: readonly { readonly name: string; readonly image: string }[];
  readonly initContainers?: PodContainers['containers'];
}

/** Waits until all pods have a sidecar of the image and the revision, and requests pass through both sidecars. */
async function expectSidecars(tag: string, revision: string): Promise<void> {
  let found: unknown;
  const isExpected = async (): Promise<boolean> => {
    const pods = (await Promise.all(['shop', 'stock'].map((app) => podsOf(node, app, 'default')))).flat();
    found = pods.map(({ metadata, spec }) => {
      const { containers, initContainers = [] } = spec as PodContainers;
      const image = [...initContainers, ...containers].find(({ name }) => name === 'istio-proxy')?.image;
      return { image, revision: metadata.annotations?.['istio.io/rev'] };
    });
    const expected = { image: `${images}/agent:${tag}`, revision };
    return JSON.stringify(found) === JSON.stringify([expected, expected, expected]);
  };
  const deployments = 'deployment/shop deployment/stock-v1 deployment/stock-v2';
  await terminal.run(`kubectl -n default rollout status ${deployments} --timeout 300s`);
  await eventually('old pods are removed', isExpected, { deadlineMs: 300_000 }).catch((error: unknown) => {
    throw new Error(`pods instead of ${tag} of revision ${revision}: ${JSON.stringify(found)}`, { cause: error });
  });
  const response = await terminal.run('kubectl exec deployment/shop -c shop -- node /app/request.js http://stock/');
  expect(response).toContain('client spiffe://cluster.local/ns/default/sa/shop');
}

/** Runs an OCI registry in the node's namespaces, so that it exits with the node. */
function startRegistry(): void {
  const configuration = {
    version: 0.1,
    storage: { filesystem: { rootdirectory: join(node.folder, 'registry') } },
    http: { addr: registry },
  };
  const file = join(node.folder, 'registry.json');
  writeFileSync(file, JSON.stringify(configuration));
  const [program = '', ...args] = [...node.namespaces.prefix, 'docker-registry', 'serve', file];
  const logFile = join(node.folder, 'registry.log');
  Program.run('registry', program, { args, cwd: node.folder, env: process.env, logFile });
}

/** A terminal in the checkout, next to which the user has built the images, with `skopeo` in the node's network. */
async function openTerminal(helmBinary: string): Promise<DemoTerminal> {
  const home = join(node.folder, 'user');
  const tools = join(home, 'bin');
  for (const folder of [tools, join(home, '.config/containers')]) mkdirSync(folder, { recursive: true });
  await buildMeshImages(join(home, 'image'));
  const registries = `[[registry]]\nlocation = "${registry}"\ninsecure = true\n`;
  writeFileSync(join(home, '.config/containers/registries.conf'), registries);
  const skopeo = [...node.namespaces.networkPrefix, findExecutable('skopeo', process.env)].join(' ');
  writeFileSync(join(tools, 'skopeo'), `#!/bin/sh\ncd ${home}\nexec ${skopeo} "$@"\n`, { mode: 0o755 });
  const kubeconfig = join(home, 'kubeconfig');
  writeKubeconfig(kubeconfig, node.cluster);
  return new DemoTerminal({
    folder: packageRoot(),
    env: { ...process.env, KUBECONFIG: kubeconfig, HOME: home, DISCOVERY: `${images}/discovery` },
    path: [tools, dirname(helmBinary), join(packageRoot(), 'bin')],
    logFolder: node.folder,
    print: (line) => console.error(line),
  });
}

describe.runIf(isFull)('the upgrade of docs/install.md', () => {
  beforeAll(async () => {
    for (const program of ['skopeo', 'docker-registry']) {
      const find = () => findExecutable(program, process.env);
      const hint = `Run: sudo apt-get install ${program}`;
      if (find() === undefined) installPackages({ name: program, packages: [program], hint, find });
    }
    const helmBinary = await findOrBuild(helm, (line) => console.error(line));
    node = await startNode();
    startRegistry();
    await startClusterDns(node);
    terminal = await openTerminal(helmBinary);
  }, limitMs);
  afterAll(() => node?.stop());

  it(
    'upgrades in place, moves a namespace to a revision and back, moves a tag, and removes the old revision',
    async () => {
      await run('registry');
      await run('registry', nextVersion);
      await terminal.run(
        'helm install istiod deploy/chart --namespace istio-system --create-namespace --set image.repository=$DISCOVERY',
      );
      await terminal.run('kubectl -n istio-system rollout status deployment/istiod --timeout 300s');
      await terminal.run('kubectl label namespace default istio-injection=enabled');
      // The applications of the example need Node, which the image of the control plane contains.
      const application = `${images}/discovery:${version}`;
      await terminal.run(`sed 's#node:24-alpine#${application}#' examples/cluster/shop.yaml | kubectl apply -f -`);
      await expectSidecars(version, 'default');

      expect(await run('upgrade', nextVersion)).toMatch(/^0 error/m);
      await expectSidecars(nextVersion, 'default');

      await run('canary');
      await expectSidecars(version, 'canary');
      await run('back');
      await expectSidecars(nextVersion, 'default');

      await run('create tag');
      await terminal.run('kubectl -n default rollout restart deployment');
      await expectSidecars(nextVersion, 'default');
      await run('move tag');
      await expectSidecars(version, 'canary');
      expect(await terminal.run('pilot-discovery check')).toContain('no namespace is in the mesh');
      await run('remove revision');
      await terminal.run('kubectl -n default rollout restart deployment');
      await expectSidecars(version, 'canary');
    },
    limitMs,
  );
});
