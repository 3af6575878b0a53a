/** Who may see debug pages (spec/discovery.md §9.1): local users, and callers from elsewhere whose identity permits it. */
import { type DebuggerAccess, foreignness } from '../../../runtime/trace/debugger-access.ts';
import type { HttpAnswer, HttpRequest } from '../http/http-server.ts';
import { type DebugPage, type PageCaller, tokenWanted } from './debug-page.ts';

export interface DebugAccess {
  /**
   * The Kubernetes namespace of whoever sent a request of another host, as an authenticator found out; undefined: none
   * knows them. Absent: there is no authenticator.
   */
  readonly namespaceOf?: (request: HttpRequest) => Promise<string | undefined>;
  /** `ENABLE_DEBUG_ENDPOINT_AUTH`: false lets everybody who is known see everything. */
  readonly checksNamespace: boolean;
  readonly rootNamespace: () => string;
  /** Proves that a local caller may read files of this program's user. */
  readonly token: Pick<DebuggerAccess, 'isTokenOf'>;
  /** `DEBUG_ENDPOINT_AUTH_LOCALHOST`: local callers need the token for every page, not only for those that change something. */
  readonly localNeedsToken: boolean;
  /** `DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES`: may see everything, as the root namespace does. */
  readonly allowedNamespaces: readonly string[];
}

/** What a caller may see. */
export type Permission = { readonly onlyNamespace?: string };

/** A caller's permission, or the answer that says why there is none. */
export async function permissionOf(
  access: DebugAccess,
  request: HttpRequest,
): Promise<{ readonly permission: Permission; readonly caller: PageCaller } | { readonly refusal: HttpAnswer }> {
  const foreign = foreignness(request);
  if (foreign === undefined && access.token.isTokenOf(request)) return { permission: {}, caller: 'operator' };
  if (foreign === undefined && !access.localNeedsToken) return { permission: {}, caller: 'local user' };
  const namespace = await access.namespaceOf?.(request);
  if (namespace === undefined) {
    if (foreign === undefined) return { refusal: tokenWanted };
    const why =
      access.namespaceOf === undefined
        ? 'and no authentication method is configured'
        : 'and the credentials are missing or invalid';
    return { refusal: { status: 401, body: `unauthenticated: without authentication ${foreign}, ${why}\n` } };
  }
  return { permission: permissionOfNamespace(access, namespace), caller: 'authenticated' };
}

/** What a workload of a namespace may see. */
export function permissionOfNamespace(access: DebugAccess, namespace: string): Permission {
  const seesAll =
    !access.checksNamespace || namespace === access.rootNamespace() || access.allowedNamespaces.includes(namespace);
  return seesAll ? {} : { onlyNamespace: namespace };
}

/** Why a page is not for a caller; undefined: it is. */
export function refusalOf(page: DebugPage, { onlyNamespace }: Permission): HttpAnswer | undefined {
  if (onlyNamespace === undefined || page.forEveryNamespace === true) return undefined;
  return { status: 403, body: `forbidden: workloads of namespace ${onlyNamespace} may not see /debug/${page.path}\n` };
}
