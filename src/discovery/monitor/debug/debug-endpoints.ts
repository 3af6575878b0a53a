import type { HttpReply, HttpRequest } from '../http/http-server.ts';
import { authorityPages } from './authority-pages.ts';
import { certificatePages } from './certificate-pages.ts';
import { changePages } from './change-pages.ts';
import { configSourcePages } from './config-source-pages.ts';
import { consulPages } from './consul-page.ts';
import { type DebugAccess, type DebugPermission, pageRejectionOf, permissionOf } from './debug-access.ts';
import { type DebugPage, type DebugSources, okReply, type PageRequest, tokenRequired } from './debug-page.ts';
import { meshPages } from './mesh-pages.ts';
import { proxyConfigPages } from './proxy-config-pages.ts';
import { proxyPages } from './proxy-pages.ts';
import { pushPages } from './push-pages.ts';
import { registration } from './registration.ts';

export type { DebugAccess, DebugSources };

export const debugPages: readonly DebugPage[] = [
  ...proxyPages,
  ...proxyConfigPages,
  ...meshPages,
  ...pushPages,
  ...changePages,
  ...certificatePages,
  ...authorityPages,
  ...configSourcePages,
  ...consulPages,
];

/** This path has the same access rules as `/debug`. */
const registrationPath = '/v1/registration';

/** `undefined` for paths other than `/debug` and `/v1/registration`. */
export async function respondToDebugRequest(
  sources: DebugSources,
  access: DebugAccess,
  request: HttpRequest,
): Promise<HttpReply | undefined> {
  const { path } = request;
  const isRegistration = path === registrationPath;
  if (!isRegistration && path !== '/debug' && !path.startsWith('/debug/')) return undefined;
  const permissionResult = await permissionOf(access, request);
  if ('refusal' in permissionResult) return permissionResult.refusal;
  const { permission } = permissionResult;
  if (isRegistration) {
    return permission.onlyNamespace === undefined
      ? registration(sources.state)
      : { status: 403, body: `forbidden: workloads of namespace ${permission.onlyNamespace} may not see this page\n` };
  }
  const name = path.replace(/^\/debug\/?/, '').replace(/\/$/, '');
  if (name === '') return { status: 200, body: indexPage(), contentType: 'text/html; charset=utf-8' };
  const { query, headers, method } = request;
  return await respondWithPage(sources, permission, name, {
    ...{ query, headers, method },
    caller: permissionResult.caller,
  });
}

export async function respondWithPage(
  sources: DebugSources,
  permission: DebugPermission,
  name: string,
  request: Omit<PageRequest, 'onlyNamespace'>,
): Promise<HttpReply | undefined> {
  if (name === 'list') return okReply(debugPages.map((page) => page.path));
  const page = debugPages.find(({ path }) => path === name);
  if (page === undefined) return undefined;
  return (
    pageRejectionOf(page, permission) ??
    changeRejectionOf(page, request) ??
    (await page.respond(sources, { ...request, ...permission }))
  );
}

/**
 * Rejects changes by GET, because any link or image in a browser can send one, and changes without the token, because every local user can connect to
 * loopback.
 */
function changeRejectionOf(
  { changes }: DebugPage,
  { query, method, caller }: Pick<PageRequest, 'query' | 'method' | 'caller'>,
): HttpReply | undefined {
  if (changes?.(query) !== true) return undefined;
  if (method === 'POST') return caller === 'local user' ? tokenRequired : undefined;
  return {
    status: 405,
    body: 'method not allowed: this request changes the control plane, send it as POST\n',
    headers: { allow: 'POST' },
  };
}

function indexPage(): string {
  const row = (path: string, description: string): string =>
    `<li><a href="${path}">${path}</a>: ${description.replaceAll('&', '&amp;')}</li>`;
  const rows = debugPages.map(({ path, description }) => row(`/debug/${path}`, description));
  rows.push(row(registrationPath, 'services and their hosts, in the format of the first versions of Pilot'));
  rows.push(row('/debug/pprof/', 'CPU and heap profiles of this process (with --profile)'));
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>pilot-discovery</title><h1>Debug endpoints</h1><p>?pretty indents JSON.</p><ul>${rows.join('\n')}</ul></html>\n`;
}
