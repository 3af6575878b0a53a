/** Requests to a host outside of the mesh. */
import type { Task } from './context.ts';
import { outsideHost, startOutsideServer } from './outside-server.ts';

const serviceEntry = (name: string, port: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: ${name} }
spec: { hosts: [${outsideHost}], ports: [${port}], resolution: DNS, location: MESH_EXTERNAL }
`;

const timeout = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: outside }
spec:
  hosts: [${outsideHost}]
  http: [{ timeout: 3s, route: [{ destination: { host: ${outsideHost} }, weight: 100 }] }]
`;

/** Exit code of curl if TLS cannot be established. */
const tlsFailed = 35;

export const egress: Task = {
  name: 'egress',
  page: 'tasks/traffic-management/egress/egress-control',
  needs: ['curl'],
  async run(tasks) {
    await startOutsideServer(tasks.node);
    const http = () => tasks.curl([`http://${outsideHost}/headers`]);
    const https = () => tasks.curl(['-k', `https://${outsideHost}/headers`]);
    await tasks.status('ALLOW_ANY: http', 200, http);
    await tasks.status('ALLOW_ANY: https', 200, https);
    try {
      await tasks.mesh.install('istiod', {
        values: { meshConfig: { outboundTrafficPolicy: { mode: 'REGISTRY_ONLY' } } },
      });
      await tasks.status('REGISTRY_ONLY: http', 502, http);
      await tasks.converges('REGISTRY_ONLY: https', `curl ${tlsFailed}`, https, {
        isExpected: ({ code }) => code === tlsFailed,
        describe: ({ code }) => `curl ${code}`,
      });
      await tasks.apply(serviceEntry('outside-http', '{ number: 80, name: http, protocol: HTTP }'));
      await tasks.status('ServiceEntry: http', 200, http);
      await tasks.apply(serviceEntry('outside-https', '{ number: 443, name: https, protocol: TLS }'));
      await tasks.status('ServiceEntry: https', 200, https);
      const delayed = () => tasks.curl([`http://${outsideHost}/delay/5`]);
      const previous = await delayed();
      tasks.record(
        '/delay/5',
        `${previous.status} after ${previous.seconds} s`,
        '200 after 5 s',
        previous.status === 200 && previous.seconds >= 5,
      );
      await tasks.apply(timeout);
      await tasks.converges('/delay/5 with a timeout of 3 s', '504 after 3 s', delayed, {
        isExpected: ({ status, seconds }) => status === 504 && seconds >= 2.9 && seconds < 4.5,
        describe: ({ status, seconds }) => `${status} after ${seconds.toFixed(2)} s`,
      });
    } finally {
      await tasks.removeApplied();
      await tasks.mesh.install('istiod');
    }
    await tasks.status('ALLOW_ANY again: http', 200, http);
  },
};
