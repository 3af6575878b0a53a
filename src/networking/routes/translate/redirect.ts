import { create } from '@bufbuild/protobuf';
import {
  RedirectAction_RedirectResponseCode as Code,
  type DirectResponseAction,
  DirectResponseActionSchema,
  type RedirectAction,
  RedirectActionSchema,
} from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { HttpDirectResponse, HttpRedirect } from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { Init } from '../../messages/init.ts';

const codes: Readonly<Record<number, Code>> = {
  301: Code.MOVED_PERMANENTLY,
  302: Code.FOUND,
  303: Code.SEE_OTHER,
  307: Code.TEMPORARY_REDIRECT,
  308: Code.PERMANENT_REDIRECT,
};

/** Prefix of a redirect path that replaces the matched prefix and keeps the rest of the path, like `prefixRewrite`. */
const prefixMarker = '%PREFIX()%';

export function redirectAction(redirect: HttpRedirect, listenerPort: number): RedirectAction {
  const { scheme } = redirect;
  return create(RedirectActionSchema, {
    hostRedirect: redirect.authority ?? '',
    portRedirect: redirectPort(redirect, listenerPort),
    responseCode: codes[redirect.redirectCode ?? 301] ?? Code.MOVED_PERMANENTLY,
    ...(scheme && { schemeRewriteSpecifier: { case: 'schemeRedirect', value: scheme } }),
    ...pathChange(redirect),
  });
}

function pathChange({
  uri,
  prefixRewrite,
}: HttpRedirect): Pick<Init<typeof RedirectActionSchema>, 'pathRewriteSpecifier'> {
  const prefix = prefixRewrite ?? (uri?.startsWith(prefixMarker) ? uri.slice(prefixMarker.length) : undefined);
  if (prefix !== undefined) return { pathRewriteSpecifier: { case: 'prefixRewrite', value: prefix } };
  return uri ? { pathRewriteSpecifier: { case: 'pathRedirect', value: uri } } : {};
}

/** Returns 0 if the redirect contains no port. The scheme's default port is omitted. */
function redirectPort({ port, derivePort, scheme, includesPort }: HttpRedirect, listenerPort: number): number {
  const redirectedPort = port ?? (derivePort === 'FROM_REQUEST_PORT' ? listenerPort : 0);
  if (includesPort) return redirectedPort;
  if ((scheme === 'http' && redirectedPort === 80) || (scheme === 'https' && redirectedPort === 443)) return 0;
  return redirectedPort;
}

export function directResponse({ status, body }: HttpDirectResponse): DirectResponseAction {
  return create(DirectResponseActionSchema, {
    status,
    ...(body && {
      body: {
        specifier:
          'string' in body
            ? { case: 'inlineString', value: body.string }
            : { case: 'inlineBytes', value: Buffer.from(body.bytes, 'base64') },
      },
    }),
  });
}
