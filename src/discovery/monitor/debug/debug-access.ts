import { type DebuggerAccess, foreignCallerReason } from '../../../runtime/trace/debugger-access.ts';
import type { HttpReply, HttpRequest } from '../http/http-server.ts';
import { type DebugPage, type PageCaller, tokenRequired } from './debug-page.ts';

export interface DebugAccess {
  /** Kubernetes namespace of a remote caller, or `undefined` if authentication fails. Absent without an authenticator. */
  readonly namespaceOf?: (request: HttpRequest) => Promise<string | undefined>;
  /** `ENABLE_DEBUG_ENDPOINT_AUTH`. If false, authenticated callers have full access. */
  readonly checksNamespace: boolean;
  readonly rootNamespace: () => string;
  /** Verifies that a local caller can read files of this process's user. */
  readonly token: Pick<DebuggerAccess, 'hasToken'>;
  /** `DEBUG_ENDPOINT_AUTH_LOCALHOST`: local callers need the token for every page, not only for changes. */
  readonly localNeedsToken: boolean;
  /** `DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES`: namespaces with full access, like the root namespace. */
  readonly allowedNamespaces: readonly string[];
}

export type DebugPermission = { readonly onlyNamespace?: string };

export async function permissionOf(
  access: DebugAccess,
  request: HttpRequest,
): Promise<{ readonly permission: DebugPermission; readonly caller: PageCaller } | { readonly refusal: HttpReply }> {
  const foreignReason = foreignCallerReason(request);
  if (foreignReason === undefined && access.token.hasToken(request)) return { permission: {}, caller: 'operator' };
  if (foreignReason === undefined && !access.localNeedsToken) return { permission: {}, caller: 'local user' };
  const namespace = await access.namespaceOf?.(request);
  if (namespace === undefined) {
    if (foreignReason === undefined) return { refusal: tokenRequired };
    const reason =
      access.namespaceOf === undefined
        ? 'and no authentication method is configured'
        : 'and the credentials are missing or invalid';
    return { refusal: { status: 401, body: `unauthenticated: without authentication ${foreignReason}, ${reason}\n` } };
  }
  return { permission: permissionOfNamespace(access, namespace), caller: 'authenticated' };
}

export function permissionOfNamespace(access: DebugAccess, namespace: string): DebugPermission {
  const hasFullAccess =
    !access.checksNamespace || namespace === access.rootNamespace() || access.allowedNamespaces.includes(namespace);
  return hasFullAccess ? {} : { onlyNamespace: namespace };
}

/** `undefined` if the caller may access the page. */
export function pageRejectionOf(page: DebugPage, { onlyNamespace }: DebugPermission): HttpReply | undefined {
  if (onlyNamespace === undefined || page.allowsOtherNamespaces === true) return undefined;
  return { status: 403, body: `forbidden: workloads of namespace ${onlyNamespace} may not see /debug/${page.path}\n` };
}
