/** Location of verified claims in a request's dynamic metadata, in which the jwt_authn filter stores them. */

export const tokenMetadata = 'envoy.filters.http.jwt_authn';

export const payloadKey = 'payload';
