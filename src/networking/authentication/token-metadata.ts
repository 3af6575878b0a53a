/** Where the jwt_authn filter stores verified claims: in the request's dynamic metadata. */

/** The namespace of the metadata is the filter's name. */
export const tokenMetadata = 'envoy.filters.http.jwt_authn';

/** Key of the claims. */
export const payloadKey = 'payload';
