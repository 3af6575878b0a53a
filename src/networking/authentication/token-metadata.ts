/** Where the filter that verifies tokens leaves what they say: dynamic metadata of the request. */

/** The name of the filter is the name of its metadata. */
export const tokenMetadata = 'envoy.filters.http.jwt_authn';

/** Below it: the claims. */
export const payloadKey = 'payload';
