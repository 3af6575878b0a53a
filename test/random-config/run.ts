/**
 * Passes random configurations through the real control plane to real Envoys. Every proxy must accept a valid
 * configuration. An invalid object must be reported clearly, and its last valid version must stay active.
 */
import { stringify } from 'yaml';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import { type Problem, problemText } from '../../src/model/config/problem.ts';
import { FeatureMesh } from '../e2e/features/harness/feature-mesh.ts';
import { freePorts } from '../harness/free-ports.ts';
import { randomConfiguration } from './configuration.ts';
import { Draw } from './draw.ts';
import { gatewayName } from './gateway-api.ts';
import { withUserError } from './user-errors.ts';
import type { MeshVocabulary, WrittenObject } from './values.ts';

export interface RandomRunOptions {
  readonly firstSeed: number;
  readonly configurations: number;
  /** Receives each finding immediately. */
  readonly report: (finding: string) => void;
  /** Whether a rejected configuration is reduced, which takes a push for each object. */
  readonly shrinks: boolean;
}

export interface RandomRunResult {
  /** Configurations that every proxy accepted. */
  readonly accepted: number;
  /** Invalid objects that were rejected. */
  readonly refused: number;
  /** Valid and total number of generated objects. */
  readonly objects: { readonly valid: number; readonly drawn: number };
  readonly findings: readonly string[];
}

const maxFindings = 10;
const unsettled = { warms: false };

export async function runRandomConfigurations(options: RandomRunOptions): Promise<RandomRunResult> {
  const run = new RandomRun(options);
  await run.start();
  try {
    await run.all();
  } finally {
    await run.stop();
  }
  return run;
}

class RandomRun implements RandomRunResult {
  accepted = 0;
  refused = 0;
  readonly objects = { valid: 0, drawn: 0 };
  readonly findings: string[] = [];
  readonly #options: RandomRunOptions;
  #mesh!: FeatureMesh;
  #context!: Omit<MeshVocabulary, 'draw'>;

  constructor(options: RandomRunOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const [proxyListenPort, proxyInboundListenPort, ...ports] = await freePorts(13);
    const workload = { labels: { app: 'web', version: 'v1' }, identity: 'spiffe://cluster.local/ns/shop/sa/web' };
    this.#mesh = await FeatureMesh.start({
      proxies: {
        bound: { labels: workload.labels },
        // Binds only the two ports that receive redirected connections.
        redirected: { ...workload, metadata: { INTERCEPTION_MODE: 'REDIRECT' } },
        edge: { type: 'router', labels: { istio: 'edge', 'gateway.networking.k8s.io/gateway-name': gatewayName } },
      },
      meshConfig: { proxyListenPort, proxyInboundListenPort },
      explains: false,
      envoyArgs: ['--drain-time-s', '1'],
    });
    const mesh = this.#mesh;
    const issuedCertificate = mesh.authority.issue(['cart.shop.test']);
    const certificate = mesh.file('tls.crt', issuedCertificate.certificate);
    const key = mesh.file('tls.key', issuedCertificate.privateKey);
    const ca = mesh.file('ca.crt', mesh.authority.certificate);
    this.#context = { gatewayPorts: ports.slice(0, 5), servicePorts: ports.slice(5), files: { certificate, key, ca } };
  }

  async all(): Promise<void> {
    const { firstSeed, configurations } = this.#options;
    for (let seed = firstSeed; seed < firstSeed + configurations; seed++) {
      if (this.findings.length >= maxFindings) break;
      const drawnObjects = randomConfiguration(seed, this.#context);
      const valid = drawnObjects.filter((object) => errorsOf(object).length === 0);
      this.objects.drawn += drawnObjects.length;
      this.objects.valid += valid.length;
      if (await this.#isAccepted(seed, valid)) await this.#checkUserError(seed, valid);
    }
  }

  async stop(): Promise<void> {
    const { lines } = this.#mesh.pilot;
    const unexpectedLines = lines.filter(
      (line) => /\terror\t/.test(line) && !/\terror\tconfig-controller\t/.test(line),
    );
    for (const line of unexpectedLines.slice(0, 3)) this.#find(`the control plane: ${line}`);
    await this.#mesh.stop();
  }

  async #isAccepted(seed: number, objects: readonly WrittenObject[]): Promise<boolean> {
    try {
      await this.#mesh.apply(asYaml(objects), unsettled);
      this.accepted++;
      return true;
    } catch (error) {
      const smallest = this.#options.shrinks ? await this.#smallest(objects) : objects;
      this.#find(`seed ${seed}: ${(error as Error).message}\n${asYaml(smallest)}`);
      await this.#mesh
        .apply('', unsettled)
        .catch(() => this.#find(`seed ${seed}: an empty mesh is not taken afterwards`));
      return false;
    }
  }

  /** Writes an invalid version of an object; the previous version must stay active. */
  async #checkUserError(seed: number, objects: readonly WrittenObject[]): Promise<void> {
    const draw = new Draw(seed + 1_000_003);
    const object = draw.pick(objects);
    const userError = object && userErrorIn(object, draw);
    if (userError === undefined) return;
    for (const problem of userError.problems)
      if (!isClear(problem)) this.#find(`seed ${seed}: unclear: ${problemText(problem)}`);
    const activeBefore = await this.#activeSpec(object);
    const fromLine = this.#mesh.pilot.lines.length;
    const writtenObjects = objects.map((one) => (one === object ? userError.object : one));
    await this.#mesh.apply(asYaml(writtenObjects), { ...unsettled, invalid: true }).catch((error: Error) => {
      this.#find(`seed ${seed}: with an error in ${nameOf(object)}: ${error.message}`);
    });
    const isReported = this.#mesh.pilot.lines
      .slice(fromLine)
      .some((line) => /\terror\t/.test(line) && line.includes(nameOf(object)));
    if (!isReported)
      this.#find(
        `seed ${seed}: nothing is reported for the error in ${nameOf(object)}:\n${asYaml([userError.object])}`,
      );
    const activeAfter = await this.#activeSpec(object);
    if (activeAfter !== activeBefore)
      this.#find(`seed ${seed}: the last valid ${nameOf(object)} is not active: ${activeBefore} → ${activeAfter}`);
    this.refused++;
  }

  /** The control plane's current version of the object, as text. */
  async #activeSpec({ kind, metadata }: WrittenObject): Promise<string> {
    const all = JSON.parse(await this.#mesh.page('/debug/configz')) as WrittenObject[];
    const { name, namespace } = metadata;
    const matchingObject = all.find(
      (one) => one.kind === kind && one.metadata.name === name && one.metadata.namespace === namespace,
    );
    return JSON.stringify(matchingObject?.spec);
  }

  /** Removes objects while the rest is still rejected. */
  async #smallest(objects: readonly WrittenObject[]): Promise<readonly WrittenObject[]> {
    let remainingObjects = objects;
    for (const object of objects) {
      const fewerObjects = remainingObjects.filter((one) => one !== object);
      const isAccepted = await this.#mesh.apply(asYaml(fewerObjects), unsettled).then(
        () => true,
        () => false,
      );
      if (!isAccepted) remainingObjects = fewerObjects;
    }
    return remainingObjects;
  }

  #find(finding: string): void {
    this.findings.push(finding);
    this.#options.report(finding);
  }
}

interface InvalidObject {
  readonly object: WrittenObject;
  readonly problems: readonly Problem[];
}

/** Not every change is an error, so several are tried. */
function userErrorIn(object: WrittenObject, draw: Draw): InvalidObject | undefined {
  for (let attempt = 0; attempt < 50; attempt++) {
    const invalidObject = withUserError(object, draw);
    const problems = errorsOf(invalidObject);
    if (problems.length > 0) return { object: invalidObject, problems };
  }
  return undefined;
}

/** Whether a problem names the object, the field, the position, and the expected value. */
function isClear({ object = '', field = '', line, message }: Problem): boolean {
  const hasInternalText = /undefined|\[object|NaN|Error:/.test(message);
  return object !== '' && field.startsWith('spec') && line > 0 && message.length > 5 && !hasInternalText;
}

function errorsOf(object: WrittenObject): readonly Problem[] {
  const { problems } = readConfigFile('case.yaml', asYaml([object]), { creationTimestamp: 0 });
  return problems.filter(({ severity }) => severity === 'error');
}

function asYaml(objects: readonly WrittenObject[]): string {
  return objects.map((object) => stringify(object, { aliasDuplicateObjects: false })).join('---\n');
}

function nameOf({ kind, metadata }: WrittenObject): string {
  return `${kind} ${metadata.namespace}/${metadata.name}`;
}
