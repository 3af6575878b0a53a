/** The demo of pods: `npm run demo:netns`, `npm run demo:netns -- --check`. */
import { parseArgs } from 'node:util';
import { explainError } from '../../src/runtime/errors.ts';
import { requireIptables } from '../harness/iptables.ts';
import { type Pod, PodMesh, podService } from '../harness/pod-mesh.ts';
import { checkPods, checkPodsEnd } from './check-pods.ts';
import { printEvents } from './event-lines.ts';
import { duration, formatFindings } from './findings.ts';
import { endingMesh, interruptedCode, interruption, print } from './session.ts';

const usage = `Usage: npm run demo:netns [-- --check]

Runs a client and two versions of a service, each in a network namespace of its own with a sidecar to which iptables
redirects its connections, and a control plane that gives them certificates. The applications know nothing of it.
Needs root; the machine's own network is left alone.

  --check  look at everything, with two hot restarts under load, and exit 0 if all is as it should be
`;

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { check: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } });
  if (values.help === true) {
    process.stdout.write(usage);
    return 0;
  }
  requireIptables();
  const interrupted = interruption();
  const startedAt = performance.now();
  const elapsed = (): string => duration(performance.now() - startedAt);
  const mesh = await PodMesh.create();
  print('starting: control plane, a client and two versions of a service, each with its sidecar …');
  return endingMesh(mesh, async () => {
    if (values.check !== true) {
      for (const name of ['pilot-discovery', 'client', 'sample-v1'] as const) {
        printEvents(name, mesh.traceFileOf(name), print);
      }
    }
    await Promise.race([mesh.start(), interrupted]);
    if (interrupted.seen) return interruptedCode;
    if (values.check !== true) return show(mesh, interrupted);
    const first = { what: 'an answer through both sidecars', seen: `after ${elapsed()}`, wanted: 'answers', ok: true };
    const progress = (line: string): void => print(`${elapsed().padStart(7)}  ${line}`);
    const findings = await Promise.race([checkPods(mesh, progress), interrupted]);
    if (findings === undefined) return interruptedCode;
    progress('ending everything, checking traces');
    const all = [first, ...findings, ...(await checkPodsEnd(mesh))];
    print(`\n${formatFindings(all)} (${elapsed()})`);
    return all.every(({ ok }) => ok) ? 0 : 1;
  });
}

async function show(mesh: PodMesh, interrupted: Promise<undefined>): Promise<number> {
  print(thingsToTry(mesh));
  const failure = await Promise.race([interrupted, mesh.anyEnded.then(() => mesh.hopeless())]);
  print(failure === undefined ? '\nending everything; once more to end at once' : `\n${failure}\nending the others`);
  return failure === undefined ? 0 : 1;
}

function thingsToTry(mesh: PodMesh): string {
  const { client, 'sample-v1': sample } = mesh.pods;
  const within = ({ side }: Pod, command: string): string => `  ${side.within(command.split(' '), '/').join(' ')}`;
  return [
    '',
    `Configuration, logs and traces are in ${mesh.root}`,
    'Things to try, in another terminal:',
    within(client, `curl http://${podService.host}/headers`),
    within(client, 'iptables-save'),
    within(sample, 'curl http://127.0.0.1:15000/certs'),
    `  kill -HUP ${sample.agent!.pid}`,
    'Ctrl-C ends everything. Above and below: one line for each state change of a statechart.',
    '',
  ].join('\n');
}

try {
  process.exit(await main());
} catch (error) {
  print(explainError(error));
  process.exit(1);
}
