/** `/debug/…`: what the control plane knows, for people and tools (spec/discovery.md §9.1). */
import { authorityPages } from './debug/authority-pages.ts';
import { type DebugAccess, type Permission, permissionOf, refusalOf } from './debug/debug-access.ts';
import { type DebugPage, type DebugSources, ok, type PageRequest, tokenWanted } from './debug/debug-page.ts';
import { meshPages } from './debug/mesh-pages.ts';
import { proxyConfigPages } from './debug/proxy-config-pages.ts';
import { proxyPages } from './debug/proxy-pages.ts';
import { pushPages } from './debug/push-pages.ts';
import { registration } from './debug/registration.ts';
import type { HttpAnswer, HttpRequest } from './http-server.ts';

export type { DebugAccess, DebugSources };

export const debugPages: readonly DebugPage[] = [
  ...proxyPages,
  ...proxyConfigPages,
  ...meshPages,
  ...pushPages,
  ...authorityPages,
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
      : { status: 403, body: `refused: not for namespace ${permission.onlyNamespace}\n` };
  }
  const name = path.replace(/^\/debug\/?/, '').replace(/\/$/, '');
  if (name === '') return { status: 200, body: indexPage(), contentType: 'text/html; charset=utf-8' };
  if (name === 'list') return ok(debugPages.map((page) => page.path));
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
  return { status: 405, body: 'this changes something: send it with the method POST\n', headers: { allow: 'POST' } };
}

function indexPage(): string {
  const row = (path: string, description: string): string =>
    `<li><a href="${path}">${path}</a>: ${description.replaceAll('&', '&amp;')}</li>`;
  const rows = debugPages.map(({ path, description }) => row(`/debug/${path}`, description));
  rows.push(row(registrationPath, 'services and their hosts, as the first Pilots answered'));
  rows.push(row('/debug/pprof/', 'profiles of this program (with --profile)'));
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>pilot-discovery</title><h1>Debug endpoints</h1><p>?pretty indents JSON.</p><ul>${rows.join('\n')}</ul></html>\n`;
}
