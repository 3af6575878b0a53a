/** Stores claims of a verified token in metadata and headers as jwt_authn does, for policies and routes. */
import type { JwtProvider } from '../../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { isObject, ownValue } from '../../../runtime/json-object.ts';
import { tokenMetadata } from '../../authentication/token-metadata.ts';
import type { VerifiedToken } from './jwt-token.ts';
import type { RequestSubject } from './subject.ts';

export function storeToken({ provider, text, claims }: VerifiedToken, { metadata, request }: RequestSubject): void {
  const { payloadInMetadata, claimToHeaders, forwardPayloadHeader, forward } = provider;
  if (payloadInMetadata !== '') {
    const previousPayload = metadata[tokenMetadata] as object | undefined;
    metadata[tokenMetadata] = { ...previousPayload, [payloadInMetadata]: withLists(claims, provider) };
  }
  const headers = request.headers as Record<string, string>;
  for (const { headerName, claimName } of claimToHeaders) {
    const value = claimName
      .split('.')
      .reduce<unknown>((claimValue, key) => (isObject(claimValue) ? ownValue(claimValue, key) : undefined), claims);
    if (['string', 'number', 'boolean'].includes(typeof value)) headers[headerName.toLowerCase()] = String(value);
  }
  if (forwardPayloadHeader !== '') headers[forwardPayloadHeader.toLowerCase()] = text.split('.')[1] ?? '';
  if (forward) return;
  const names =
    provider.fromHeaders.length > 0 ? provider.fromHeaders.map(({ name }) => name.toLowerCase()) : ['authorization'];
  for (const name of names) if (headers[name]?.includes(text)) delete headers[name];
}

function withLists(claims: VerifiedToken['claims'], { normalizePayloadInMetadata }: JwtProvider): object {
  const names = normalizePayloadInMetadata?.spaceDelimitedClaims ?? [];
  const lists = names.flatMap((name) => {
    const value = ownValue(claims, name);
    return typeof value === 'string' ? [[name, value.split(' ').filter(Boolean)] as const] : [];
  });
  return { ...claims, ...Object.fromEntries(lists) };
}
