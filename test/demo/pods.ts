/** The pod demo: `npm run demo:netns`, `npm run demo:netns -- --check`. */
import { requireIptables } from '../harness/iptables.ts';
import { type Pod, PodMesh, podService } from '../harness/pod-mesh.ts';
import { checkPods, checkPodsEnd } from './check-pods.ts';
import { runDemo } from './run-demo.ts';

const usage = `Usage: npm run demo:netns [-- --check]

Runs a client and two versions of a service, each in a network namespace of its own with a sidecar to which iptables
redirects its connections, and a control plane that gives them certificates. The applications are unmodified.
Needs root; the machine's own network does not change.

  --check  check all of this, with two hot restarts under load, and exit with 0 if all results are as expected
`;

const commandIn = ({ side }: Pod, command: string): string => `  ${side.within(command.split(' '), '/').join(' ')}`;

await runDemo({
  usage,
  starting: 'starting: control plane, a client and two versions of a service, each with its sidecar …',
  started: 'a response through both sidecars',
  create: () => {
    requireIptables();
    return PodMesh.create();
  },
  printed: ['pilot-discovery', 'client', 'sample-v1'],
  check: checkPods,
  checkEnd: checkPodsEnd,
  thingsToTry: ({ pods: { client, 'sample-v1': sample } }) => [
    commandIn(client, `curl http://${podService.host}/headers`),
    commandIn(client, 'iptables-save'),
    commandIn(sample, 'curl http://127.0.0.1:15000/certs'),
    `  kill -HUP ${sample.agent!.pid}`,
  ],
});
