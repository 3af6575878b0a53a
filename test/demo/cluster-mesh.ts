/**
 * A bare Kubernetes cluster of one real node, which the commands of a user turn into a mesh: the images of `deploy/image`, Helm, kubectl. No registry
 * is contacted.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ChartpilotError } from '../../src/runtime/errors.ts';
import { findExecutable } from '../../src/runtime/files/executable.ts';
import { packageRoot, packageVersion } from '../../src/runtime/package-root.ts';
import { findOrBuild, helm } from '../cluster/go-program.ts';
import { writeKubeconfig } from '../cluster/mesh-objects.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { leftovers, testRunVariable } from '../harness/host-processes.ts';
import { isAlive } from '../harness/process-alive.ts';
import type { Program } from '../harness/program.ts';
import { startClusterDns } from '../node/cluster-dns.ts';
import { nodePaths } from '../node/node-configuration.ts';
import { type RunningNode, startNode } from '../node/start-node.ts';
import { duration } from './findings.ts';
import { DemoTerminal } from './terminal.ts';

/** Image of the applications in `examples/cluster/shop.yaml`. */
const applicationImage = 'docker.io/library/node:24-alpine';
const gatewayHost = 'shop.example.com';
const imageVariable = 'CHARTPILOT_TEST_IMAGE';

/** A program whose trace the debugger shows. */
interface AttachedProgram {
  readonly name: string;
  readonly port: number;
  readonly token: string;
}

export class ClusterMesh {
  readonly root = mkdtempSync(join(tmpdir(), 'cp-demo-'));
  readonly #print: (line: string) => void;
  readonly #testRun = randomUUID();
  readonly #startedPrograms: Program[] = [];
  #node: RunningNode | undefined;
  #terminal: DemoTerminal | undefined;
  #programs: readonly AttachedProgram[] = [];
  #gatewayPort = 0;
  /** Response of the first request through both sidecars. */
  firstResponse = '';
  /** Reports of `pilot-discovery check`. */
  checkedBefore = '';
  checkedAfter = '';
  /** Address of the debugger's page. */
  pageUrl = '';

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  get terminal(): DemoTerminal {
    if (this.#terminal === undefined) throw new Error('the cluster is not started');
    return this.#terminal;
  }

  get programs(): readonly AttachedProgram[] {
    return this.#programs;
  }

  /** Command of the unmodified client: its sidecar and that of `stock` are between both applications. */
  readonly clientCommand = 'kubectl exec deployment/shop -c shop -- node /app/request.js http://stock/';

  get gatewayCommand(): string {
    return `curl -sS --fail -H 'Host: ${gatewayHost}' http://127.0.0.1:${this.#gatewayPort}/`;
  }

  /** Resolves when a command that should keep running has exited. */
  get anyEnded(): Promise<unknown> {
    return Promise.race(this.#startedPrograms.map(({ exited }) => exited));
  }

  hopeless(): string | undefined {
    return this.#startedPrograms.map((program) => program.hopeless()).find(Boolean);
  }

  traceFileOf(name: string): string {
    return join(this.root, `${name}.trace.ndjson`);
  }

  /** Installs a mesh with a Gateway and opens the debugger's page. */
  async start(): Promise<void> {
    if (findExecutable('kubectl', process.env) === undefined)
      throw new ChartpilotError('REQUEST_FAILED', 'kubectl is not in PATH', { hint: 'Install kubectl 1.30 or later.' });
    const helmBinary = await findOrBuild(helm, this.#print);
    const logFolder = join(this.root, 'logs');
    mkdirSync(logFolder);
    const kubeconfig = join(this.root, 'kubeconfig');
    const env = { ...process.env, KUBECONFIG: kubeconfig, HOME: this.root, [testRunVariable]: this.#testRun };
    const path = [dirname(helmBinary), join(packageRoot(), 'bin')];
    const print = this.#print;
    const building = new DemoTerminal({
      folder: packageRoot(),
      env: { ...env, HOME: process.env.HOME },
      path,
      logFolder,
      print,
    });
    building.comment('Images are built without a registry while a bare cluster starts: API server, node, CoreDNS');
    const [images, node] = await Promise.all([this.#buildImages(building), this.#startCluster()]);
    const { containerdSocket } = nodePaths(node.folder);
    writeKubeconfig(kubeconfig, node.cluster);
    const onNode = { ...env, CONTAINERD_ADDRESS: containerdSocket };
    this.#terminal = new DemoTerminal({ folder: packageRoot(), env: onNode, path, logFolder, print });
    const startedAt = performance.now();
    await this.#install(images);
    await this.#addApplications();
    this.#print(`\nfrom a bare cluster to the first response: ${duration(performance.now() - startedAt)}`);
    await this.#addGateway();
    await this.#openDebugger();
  }

  async #buildImages(terminal: DemoTerminal): Promise<string> {
    const imagesFolder = process.env[imageVariable];
    if (imagesFolder) {
      this.#print(`  ${imageVariable}: images of ${imagesFolder}`);
      return imagesFolder;
    }
    const output = join(this.root, 'image');
    await terminal.run(`npm run --silent image -- --output ${output}`);
    return output;
  }

  async #startCluster(): Promise<RunningNode> {
    this.#node = await startNode(this.#print);
    await startClusterDns(this.#node, this.#print);
    return this.#node;
  }

  async #install(images: string): Promise<void> {
    const { terminal } = this;
    const version = packageVersion();
    terminal.comment('Import the images into the node (with a registry: docs/install.md)');
    await terminal.run(`tar -C ${images}/oci -cf ${this.root}/image.tar .`);
    await terminal.run(`ctr --namespace k8s.io images import ${this.root}/image.tar`);
    rmSync(join(this.root, 'image.tar'));
    // The applications of the demo need Node, which the image of the control plane contains.
    await terminal.run(
      `ctr --namespace k8s.io images tag localhost/chartpilot/discovery:${version} ${applicationImage}`,
    );
    terminal.comment('Check the cluster');
    this.checkedBefore = await terminal.run('pilot-discovery check');
    terminal.comment('Kinds of the Gateway API, as the report recommends');
    await terminal.run(`kubectl apply --server-side -f ${gatewayApiDefinitions()}`);
    terminal.comment('Install the control plane');
    const values = 'image.repository=localhost/chartpilot/discovery';
    await terminal.run(`helm install istiod deploy/chart --namespace istio-system --create-namespace --set ${values}`);
    await terminal.run('kubectl -n istio-system rollout status deployment/istiod --timeout 120s');
  }

  async #addApplications(): Promise<void> {
    const { terminal } = this;
    terminal.comment('Add a namespace to the mesh, and applications to the namespace');
    await terminal.run('kubectl label namespace default istio-injection=enabled');
    await terminal.run('kubectl apply -f examples/cluster/shop.yaml');
    await terminal.run('kubectl wait --for condition=Available deployment --all --timeout 120s');
    await terminal.run('kubectl get pods');
    this.checkedAfter = await terminal.run('pilot-discovery check');
    terminal.comment('A request: shop, its sidecar, the sidecar of stock, stock');
    this.firstResponse = await terminal.run(this.clientCommand);
  }

  async #addGateway(): Promise<void> {
    const { terminal } = this;
    terminal.comment('A Gateway of the Gateway API');
    await terminal.run('kubectl apply -f examples/cluster/gateway.yaml');
    await terminal.run('kubectl wait --for condition=Programmed gateway/front --timeout 120s');
    await terminal.run('kubectl rollout status deployment/front-istio --timeout 120s');
    const [port] = (await freePorts(1)) as [number];
    this.#gatewayPort = port;
    await this.#forward('service/front-istio', port, 80);
    await terminal.run(
      `curl -sS --retry 5 --retry-all-errors --fail -H 'Host: ${gatewayHost}' http://127.0.0.1:${port}/`,
    );
  }

  async #openDebugger(): Promise<void> {
    const { terminal } = this;
    terminal.comment("The debugger's page: control plane, sidecar and gateway, live");
    const agent = { container: 'istio-proxy', port: 15_020, runDirectory: '/etc/istio/proxy/chartpilot-1337' };
    const targets = [
      {
        ...{ name: 'control plane', namespace: 'istio-system', target: 'deployment/istiod' },
        ...{ container: 'discovery', port: 15_014, runDirectory: '/tmp/chartpilot-1337' },
      },
      { name: 'sidecar', namespace: 'default', target: 'deployment/shop', ...agent },
      { name: 'gateway', namespace: 'default', target: 'deployment/front-istio', ...agent },
    ];
    const ports = await freePorts(targets.length);
    const tokens: string[] = [];
    const programs: AttachedProgram[] = [];
    for (const [index, { name, namespace, target, container, port, runDirectory }] of targets.entries()) {
      await this.#forward(`-n ${namespace} ${target}`, ports[index]!, port);
      const read = `kubectl -n ${namespace} exec ${target} -c ${container} -- cat ${runDirectory}/debugger-${port}.token`;
      tokens.push(`"$(${read})"`);
      programs.push({ name, port: ports[index]!, token: (await terminal.repeat(read)).trim() });
    }
    this.#programs = programs;
    const attached = programs.map(({ port }, index) => `--attach ${port} --token ${tokens[index]}`);
    const page = await this.#start(`chartpilot visualize ${attached.join(' \\\n    ')}`, /http:\/\/\S+/);
    this.pageUrl = /http:\/\/\S+/.exec(page.output())![0];
    this.#print(`  ${this.pageUrl}`);
  }

  #forward(target: string, local: number, remote: number): Promise<Program> {
    return this.#start(`kubectl port-forward ${target} ${local}:${remote}`, /Forwarding from/);
  }

  async #start(command: string, ready: RegExp): Promise<Program> {
    const program = await this.terminal.start(command, ready);
    this.#startedPrograms.push(program);
    return program;
  }

  /** Removes applications and control plane like a user. @returns leftovers in the cluster */
  async uninstall(): Promise<string> {
    const { terminal } = this;
    terminal.comment('Remove the mesh');
    await terminal.run('kubectl delete -f examples/cluster/gateway.yaml -f examples/cluster/shop.yaml');
    await terminal.run('kubectl label namespace default istio-injection-');
    await terminal.run('helm uninstall istiod --namespace istio-system --wait');
    await terminal.run('kubectl delete namespace istio-system');
    await terminal.run('kubectl delete configmap --all-namespaces --field-selector metadata.name=istio-ca-root-cert');
    await terminal.run('kubectl delete gatewayclass istio');
    await terminal.run('kubectl delete crd --selector app.kubernetes.io/part-of=chartpilot');
    const webhooks = 'mutatingwebhookconfiguration,validatingwebhookconfiguration';
    const kinds = `${webhooks},clusterrole,clusterrolebinding,crd`;
    const objects = await terminal.run(`kubectl get ${kinds} -o name --selector app.kubernetes.io/part-of=chartpilot`);
    return `${objects}${await terminal.run('kubectl get configmap,secret,lease,deployment,gatewayclass -A -o name | grep istio || true')}`;
  }

  /** @returns leftovers on the host */
  async stop({ keepDirectory = false } = {}): Promise<string[]> {
    const logs = this.#node?.lastLines() ?? '';
    await Promise.all(this.#startedPrograms.map((program) => program.stop({ deadlineMs: 10_000 })));
    await this.#node?.stop();
    const first = this.#node?.namespaces.pid;
    const listLeftovers = (): string[] => [
      ...leftovers(this.#testRun, new Set()),
      ...(first !== undefined && isAlive(first) ? [`process ${first}: the first one of the node`] : []),
    ];
    await eventually('nothing is left', () => listLeftovers().length === 0, { deadlineMs: 10_000 }).catch(() => {});
    if (keepDirectory) writeFileSync(join(this.root, 'node.log'), logs);
    else this.remove();
    return listLeftovers();
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** CRDs of the Gateway API, from the Go module that the conformance suite uses. */
function gatewayApiDefinitions(): string {
  const suite = join(packageRoot(), 'test/gateway-conformance/suite');
  const [, version] = /sigs\.k8s\.io\/gateway-api (v\S+)/.exec(readFileSync(join(suite, 'go.mod'), 'utf8'))!;
  const module = `sigs.k8s.io/gateway-api@${version}`;
  const output = execFileSync('go', ['mod', 'download', '-json', module], { cwd: suite, encoding: 'utf8' });
  const folder = join((JSON.parse(output) as { Dir: string }).Dir, 'config/crd/standard');
  if (!existsSync(folder)) throw new Error(`${module} has no folder config/crd/standard`);
  return folder;
}
