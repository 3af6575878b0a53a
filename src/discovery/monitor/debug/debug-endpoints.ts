/** `/debug/…`: what the control plane knows, for people and tools (spec/discovery.md §9.1). */

import type { HttpAnswer, HttpRequest } from '../http/http-server.ts';
import { authorityPages } from './authority-pages.ts';
import { certificatePages } from './certificate-pages.ts';
import { changePages } from './change-pages.ts';
import { configSourcePages } from './config-source-pages.ts';
import { consulPages } from './consul-page.ts';
import { type DebugAccess, type Permission, permissionOf, refusalOf } from './debug-access.ts';
import { type DebugPage, type DebugSources, ok, type PageRequest, tokenWanted } from './debug-page.ts';
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

/** Outside of `/debug`, for the same callers. */
const registrationPath = '/v1/registration';

/** Answers a request below `/debug`, or of `/v1/registration`; undefined when the path is another. */
export async function answerDebug(
  sources: DebugSources,
  access: DebugAccess,
  request: HttpRequest,
): Promise<HttpAnswer | undefined> {
  const { path } = request;
  const isRegistration = path === registrationPath;
  if (!isRegistration && path !== '/debug' && !path.startsWith('/debug/')) return undefined;
  const permitted = await permissionOf(access, request);
  if ('refusal' in permitted) return permitted.refusal;
  const { permission } = permitted;
  if (isRegistration) {
    return permission.onlyNamespace === undefined
      ? registration(sources.state)
      : { status: 403, body: `forbidden: workloads of namespace ${permission.onlyNamespace} may not see this page\n` };
  }
  const name = path.replace(/^\/debug\/?/, '').replace(/\/$/, '');
  if (name === '') return { status: 200, body: indexPage(), contentType: 'text/html; charset=utf-8' };
  const { query, headers, method } = request;
  return await answerPage(sources, permission, name, {
    ...{ query, headers, method },
    caller: permitted.caller,
  });
}

/** Answers for a page by its name; undefined when there is none of this name. */
export async function answerPage(
  sources: DebugSources,
  permission: Permission,
  name: string,
  request: Omit<PageRequest, 'onlyNamespace'>,
): Promise<HttpAnswer | undefined> {
  if (name === 'list') return ok(debugPages.map((page) => page.path));
  const page = debugPages.find(({ path }) => path === name);
  if (page === undefined) return undefined;
  return (
    refusalOf(page, permission) ??
    changeRefusal(page, request) ??
    (await page.answer(sources, { ...request, ...permission }))
  );
}

/** Any page of a browser sends a GET, by a link or an image, and any local user can connect to loopback: neither changes anything. */
function changeRefusal(
  { changes }: DebugPage,
  { query, method, caller }: Pick<PageRequest, 'query' | 'method' | 'caller'>,
): HttpAnswer | undefined {
  if (changes?.(query) !== true) return undefined;
  if (method === 'POST') return caller === 'local user' ? tokenWanted : undefined;
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
