/** The tasks of Istio's section "Security". */
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { systemNamespace } from '../mesh/installed-mesh.ts';
import { readyPods } from '../workloads.ts';
import type { Task, TaskContext } from './context.ts';
import { outsideHost, startOutsideServer } from './outside-server.ts';

const namespaceOf = (name: string, isInjected: boolean): string =>
  JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Namespace' },
    metadata: { name, ...(isInjected && { labels: { 'istio-injection': 'enabled' } }) },
  });

const strict = `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: { name: default }
spec: { mtls: { mode: STRICT } }
`;

export const mutualTlsMigration: Task = {
  name: 'mutual-tls-migration',
  page: 'tasks/security/authentication/mtls-migration',
  needs: ['curl', 'httpbin'],
  async run(tasks) {
    // The tests' namespace corresponds to `foo` on the page.
    const foo = tasks.namespace;
    for (const [name, isInjected] of [
      ['bar', true],
      ['legacy', false],
    ] as const) {
      await tasks.apply(namespaceOf(name, isInjected));
      await tasks.apply(tasks.samples.read('curl/curl.yaml'), name);
    }
    await tasks.apply(tasks.samples.read('httpbin/httpbin.yaml'), 'bar');
    await Promise.all([
      ...['bar', 'legacy'].map((name) => readyPods(tasks.node, 'curl', 1, name)),
      readyPods(tasks.node, 'httpbin', 1, 'bar'),
    ]);
    const title = (namespace: string): string => (namespace === foo ? 'foo' : namespace);
    const pairs = [foo, 'bar', 'legacy'].flatMap((from) => [foo, 'bar'].map((to) => ({ from, to })));
    const requests = async (): Promise<string> => {
      const results = await Promise.all(
        pairs.map(async ({ from, to }) => {
          const { status } = await tasks.curl([`http://httpbin.${to}:8000/ip`], from);
          return status === 200 ? [] : `${title(from)} to ${title(to)}: ${status}`;
        }),
      );
      return results.flat().join(', ') || 'all 200';
    };
    const expectOutcome = (description: string, expected: string) =>
      tasks.converges(description, expected, requests, { isExpected: (result) => result === expected });
    await expectOutcome('requests of foo, bar, legacy to foo, bar', 'all 200');
    await tasks.apply(strict);
    await expectOutcome('STRICT in foo', 'legacy to foo: 0');
    await tasks.apply(strict, systemNamespace);
    await expectOutcome('STRICT in the mesh', 'legacy to foo: 0, legacy to bar: 0');
    await tasks.delete('PeerAuthentication', 'default');
    await tasks.delete('PeerAuthentication', 'default', systemNamespace);
    await expectOutcome('without PeerAuthentication', 'all 200');
  },
};

const policy = (name: string, spec: string): string => `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: ${name} }
spec: ${spec}
`;

const viewer = (app: string, from: string): string =>
  policy(
    `${app}-viewer`,
    `{ selector: { matchLabels: { app: ${app} } }, action: ALLOW, rules: [{ ${from} to: [{ operation: { methods: [GET] } }] }] }`,
  );

const pageUrl = 'http://productpage:9080/productpage';

/** Lists the missing parts of a page. */
function describePage(status: number, html: string): string {
  if (status !== 200) return `${status} ${html}`;
  const missingSections = ['details', 'reviews'].filter((sectionName) =>
    html.includes(`Error fetching product ${sectionName}!`),
  );
  if (html.includes('Ratings service is currently unavailable')) missingSections.push('ratings');
  return missingSections.length === 0 ? 'complete' : `without ${missingSections.join(', ')}`;
}

export const authorization: Task = {
  name: 'authorization-http',
  page: 'tasks/security/authorization/authz-http',
  needs: ['curl', 'bookinfo'],
  async run(tasks) {
    const account = (name: string): string =>
      `from: [{ source: { principals: ["cluster.local/ns/${tasks.namespace}/sa/${name}"] } }],`;
    // One of three pages has reviews without ratings.
    const pages = async (): Promise<string> => {
      const observedResults = new Set<string>();
      for (let i = 0; i < 9; i++) {
        const { status, body } = await tasks.curl([pageUrl]);
        observedResults.add(describePage(status, body));
      }
      return [...observedResults].sort().join(' or ');
    };
    const expectOutcome = (description: string, expected: string) =>
      tasks.converges(description, expected, pages, { isExpected: (result) => result === expected });
    await expectOutcome('without a policy', 'complete');
    await tasks.apply(policy('allow-nothing', '{}'));
    await expectOutcome('allow-nothing', '403 RBAC: access denied');
    await tasks.apply(viewer('productpage', ''));
    await expectOutcome('productpage-viewer', 'without details, reviews');
    await tasks.apply(viewer('details', account('bookinfo-productpage')));
    await expectOutcome('details-viewer', 'without reviews');
    await tasks.apply(viewer('reviews', account('bookinfo-productpage')));
    await expectOutcome('reviews-viewer', 'complete or without ratings');
    await tasks.apply(viewer('ratings', account('bookinfo-reviews')));
    await expectOutcome('ratings-viewer', 'complete');
    await tasks.status('POST to the page', 403, () => tasks.curl(['-X', 'POST', pageUrl]));
    await tasks.status('client to ratings', 403, () => tasks.curl(['http://ratings:9080/ratings/0']));
  },
};

const issuer = 'testing@example.com';

const requestAuthentication = (keys: string): string => `
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: { name: jwt-example }
spec:
  selector: { matchLabels: { app: httpbin } }
  jwtRules: [{ issuer: ${issuer}, ${keys} }]
`;

const requireJwt = (condition = ''): string =>
  policy(
    'require-jwt',
    `{ selector: { matchLabels: { app: httpbin } }, action: ALLOW, rules: [{ from: [{ source: { requestPrincipals: ["${issuer}/${issuer}"] } }], ${condition} }] }`,
  );

export const jwt: Task = {
  name: 'jwt',
  page: 'tasks/security/authorization/authz-jwt',
  needs: ['curl', 'httpbin'],
  async run(tasks) {
    const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
    const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'test', alg: 'RS256' }] });
    const token = (claims = {}, key = privateKey): Promise<string> =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: 'RS256', kid: 'test' })
        .setIssuer(issuer)
        .setSubject(issuer)
        .setExpirationTime('1h')
        .sign(key);
    const [valid, groupToken, foreignToken] = await Promise.all([
      token(),
      token({ groups: ['group1', 'group2'] }),
      generateKeyPair('RS256').then((other) => token({}, other.privateKey)),
    ]);
    const send = (bearer?: string) => () =>
      tasks.curl([...(bearer ? ['-H', `Authorization: Bearer ${bearer}`] : []), 'http://httpbin:8000/headers']);
    const status = (description: string, expected: number, bearer?: string) =>
      tasks.status(description, expected, send(bearer));
    await tasks.apply(requestAuthentication(`jwks: '${keySet}'`));
    await status('invalid token', 401, 'invalidToken');
    await status('token of another key', 401, foreignToken);
    await status('no token, no policy', 200);
    await status('valid token', 200, valid);
    await tasks.apply(requireJwt());
    await status('no token, requestPrincipals required', 403);
    await status('valid token, requestPrincipals required', 200, valid);
    await tasks.apply(requireJwt('when: [{ key: "request.auth.claims[groups]", values: [group1] }]'));
    await status('token without group1', 403, valid);
    await status('token with group1', 200, groupToken);
    await jwtByUri({ tasks, keySet, status, valid: groupToken });
  },
};

interface UriTask {
  readonly tasks: TaskContext;
  readonly keySet: string;
  readonly status: (description: string, expected: number, bearer?: string) => Promise<void>;
  readonly valid: string;
}

/** The control plane fetches the keys. */
async function jwtByUri({ tasks, keySet, status, valid }: UriTask): Promise<void> {
  await startOutsideServer(tasks.node);
  const uri = (keys: string): string => `http://${outsideHost}/base64/${Buffer.from(keys).toString('base64url')}`;
  await tasks.apply(requestAuthentication(`jwksUri: '${uri('{"keys": []}')}'`));
  await status('jwksUri without keys', 401, valid);
  await tasks.apply(requestAuthentication(`jwksUri: '${uri(keySet)}'`));
  await status('jwksUri with the key', 200, valid);
}
