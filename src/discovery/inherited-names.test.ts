/** Names of properties that every JavaScript object inherits are treated as ordinary names if clients or objects use them. */

import { afterEach, expect, it } from 'vitest';
import { typeUrls } from '../../test/ads-client.ts';
import {
  ControlPlane,
  cartCluster,
  serviceEntry,
  sidecar,
  stopControlPlanes,
} from '../../test/harness/control-plane.ts';
import { eventually } from '../../test/harness/eventually.ts';
import { linesOf } from '../../test/harness/logged-line.ts';
import { validateFiles } from './config/validation/validate-files.ts';

afterEach(stopControlPlanes);

const inherited = ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'];

function object(apiVersion: string, kind: string, name: string, spec: string): string {
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n`;
}

/** Objects with this name as each name, label, key and list item. */
function objectsWith(k: string): string {
  const networking = (kind: string, spec: string): string =>
    object('networking.istio.io/v1', kind, `a-${kind.toLowerCase()}`, spec);
  const security = (kind: string, spec: string): string =>
    object('security.istio.io/v1', kind, `a-${kind.toLowerCase()}`, spec);
  const groups = [
    'networking.istio.io/v1',
    'security.istio.io/v1',
    'gateway.networking.k8s.io/v1',
    'telemetry.istio.io/v1',
    'v1',
  ];
  return [
    ...[...groups, `${k}/v1`, k].map((group) => object(group, k, k, '{}')),
    `apiVersion: v1\nkind: Service\nmetadata: {name: a, namespace: shop, labels: {${k}: a}, annotations: {${k}: a}}\nspec: {selector: {${k}: a}, ports: [{port: 80, name: ${k}, protocol: ${k}}]}\n`,
    networking(
      'VirtualService',
      `{hosts: [cart.example.com], http: [{match: [{headers: {${k}: {exact: a}}, queryParams: {${k}: {exact: a}}, withoutHeaders: {${k}: {exact: a}}, sourceLabels: {${k}: a}}], route: [{destination: {host: cart.example.com, subset: ${k}}, headers: {request: {set: {${k}: a}}}}]}]}`,
    ),
    networking('VirtualService', `{hosts: [b.example.com], http: [{match: [{uri: {${k}: a}}], ${k}: 1}]}`).replace(
      'a-virtual',
      'b-virtual',
    ),
    networking(
      'DestinationRule',
      `{host: cart.example.com, subsets: [{name: ${k}, labels: {${k}: a}}], trafficPolicy: {loadBalancer: {localityLbSetting: {enabled: true, failoverPriority: [${k}]}}, outlierDetection: {}}}`,
    ),
    networking('DestinationRule', `{host: b.example.com, trafficPolicy: {loadBalancer: {simple: ${k}}}}`).replace(
      'a-dest',
      'b-dest',
    ),
    networking(
      'ServiceEntry',
      `{hosts: [c.example.com], ports: [{number: 80, name: ${k}, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 1.1.1.1, ports: {${k}: 80}, labels: {${k}: a}}]}`,
    ),
    networking(
      'ServiceEntry',
      `{hosts: [d.example.com], ports: [{number: 80, name: ${k}-a, protocol: ${k}}], resolution: ${k}}`,
    ).replace('a-service', 'b-service'),
    networking(
      'Gateway',
      `{selector: {${k}: a}, servers: [{port: {number: 80, name: ${k}, protocol: HTTP}, hosts: ['${k}/*']}]}`,
    ),
    object(
      'networking.istio.io/v1alpha3',
      'EnvoyFilter',
      'a',
      `{configPatches: [{applyTo: CLUSTER, match: {context: SIDECAR_OUTBOUND, proxy: {metadata: {${k}: a}}}, patch: {operation: MERGE, value: {${k}: a}}}]}`,
    ),
    networking('Sidecar', `{egress: [{hosts: ['./*', '${k}/*']}], workloadSelector: {labels: {${k}: a}}}`),
    security('AuthorizationPolicy', `{rules: [{when: [{key: ${k}, values: [a]}]}]}`),
    security('AuthorizationPolicy', `{action: ${k}, rules: [{from: [{source: {${k}: [a]}}]}]}`).replace(
      'a-auth',
      'b-auth',
    ),
    security('PeerAuthentication', `{mtls: {mode: ${k}}, portLevelMtls: {${k}: {mode: STRICT}}}`),
    security(
      'RequestAuthentication',
      `{jwtRules: [{issuer: a, jwks: '{"keys":[{"kty":"EC","crv":"${k}","x":"AA","y":"AA"},{"kty":"${k}"}]}'}]}`,
    ),
    object(
      'telemetry.istio.io/v1',
      'Telemetry',
      'a',
      `{metrics: [{providers: [{name: ${k}}], overrides: [{tagOverrides: {${k}: {value: a}}}]}], tracing: [{customTags: {${k}: {literal: {value: a}}}}]}`,
    ),
  ].join('---\n');
}

it.each(inherited)(
  'objects with the name %s are accepted, or rejected with a reason that contains no internals',
  async (name) => {
    const texts = objectsWith(name)
      .split('---\n')
      .map((text, index) => ({ file: `${index}.yaml`, text }));
    const { problems, unreadable } = await validateFiles([], texts);
    expect(unreadable).toEqual([]);
    // Without an own-property check, the text would be that of a function or an internal error.
    expect(JSON.stringify(problems)).not.toMatch(
      /TypeError|is not a function|native code|function \w*\(|Cannot read|\[object/,
    );
    expect(problems.length).toBeGreaterThan(8);
  },
);

it.each(inherited)(
  'a control plane serves clients while objects have inherited names, even if a client requests the type %s',
  async (name) => {
    const plane = await ControlPlane.serving({}, { 'cart.yaml': serviceEntry(), 'inherited.yaml': objectsWith(name) });
    const { stream, clusters } = await plane.subscribe();
    expect(clusters).toContain(cartCluster);
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    stream.send({ typeUrl: name, resourceNames: [name], responseNonce: 'x', errorDetail: { code: 13, message: name } });
    await eventually(
      'the request is logged',
      () => linesOf(plane.lines, 'request.judged.unserved', { typeUrl: name }).length > 0,
    );
    const labels = { app: 'web', [name]: 'a' };
    const other = plane.client('ads.listening').sotw();
    other.send({
      node: {
        ...sidecar,
        metadata: JSON.parse(JSON.stringify({ ...sidecar.metadata, LABELS: labels, CLUSTER_ID: name })),
      },
      typeUrl: typeUrls.CDS,
    });
    expect((await other.next()).resources.length).toBeGreaterThan(0);
    other.send({ typeUrl: typeUrls.LDS });
    expect((await other.next()).typeUrl).toBe(typeUrls.LDS);
    for (const page of [`object?kind=${name}`, `config_dump?resource=${name}`, `authorityz?order=${name}`]) {
      expect((await plane.get(`/debug/${page}`)).status, page).toBeLessThan(500);
    }
    expect(plane.lines.join('\n')).not.toMatch(/TypeError|is not a function|Cannot read/);
    plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
    expect((await stream.next()).typeUrl).toBe(typeUrls.CDS);
  },
);
