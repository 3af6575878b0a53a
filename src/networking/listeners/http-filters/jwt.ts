import { JwtAuthenticationSchema } from '../../../gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.ts';
import { jwtAuthentication } from '../../authentication/jwt.ts';
import { tokenMetadata } from '../../authentication/token-metadata.ts';
import { typedExtension } from '../../messages/any.ts';
import type { HttpFilterContributor } from './contributor.ts';

export const jwt: HttpFilterContributor = (context) => {
  const authentication = jwtAuthentication(context);
  return authentication === undefined ? [] : [typedExtension(tokenMetadata, JwtAuthenticationSchema, authentication)];
};
