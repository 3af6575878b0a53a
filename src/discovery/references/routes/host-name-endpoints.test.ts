import { expect, it } from 'vitest';
import { validateFiles } from '../../config/validation/validate-files.ts';

const workload = (address: string) => `
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: { name: vm1, namespace: shop, labels: { app: vm } }
spec: { address: ${address} }
---`;
const entry = (resolution: string) => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: vm, namespace: shop }
spec: { hosts: [vm.test], location: MESH_INTERNAL, resolution: ${resolution}, ports: [{ number: 80, name: http, protocol: HTTP }], workloadSelector: { labels: { app: vm } } }
---`;

async function warnings(...documents: string[]): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text: documents.join('') }]);
  return problems.map(({ object, field, message }) => `${object} ${field} ${message}`);
}

it('validate warns about a WorkloadEntry with a host name if a STATIC ServiceEntry selects it', async () => {
  expect(await warnings(workload('localhost'), entry('STATIC'))).toEqual([
    expect.stringMatching(/^WorkloadEntry shop\/vm1 spec.address is the host name localhost, .*ServiceEntry shop\/vm/),
  ]);
});

it('validate warns about a WorkloadEntry with a host name if a Service selects it', async () => {
  const service = `
apiVersion: v1
kind: Service
metadata: { name: vm, namespace: shop }
spec: { selector: { app: vm }, ports: [{ port: 80, name: http }] }
---`;
  expect(await warnings(workload('vm.internal'), service)).toEqual([
    expect.stringMatching(
      /^WorkloadEntry shop\/vm1 spec.address is the host name vm.internal, .*Service shop\/vm does/,
    ),
  ]);
  expect(await warnings(workload('10.0.0.1'), service)).toEqual([]);
});

it('validate accepts a host name that Envoy resolves, and an IP address in a STATIC ServiceEntry', async () => {
  expect(await warnings(workload('localhost'), entry('DNS'))).toEqual([]);
  expect(await warnings(workload('10.0.0.1'), entry('STATIC'))).toEqual([]);
});
