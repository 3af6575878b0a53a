import { RouterSchema } from '../../../gen/envoy/extensions/filters/http/router/v3/router_pb.ts';
import { proxySettingsOf } from '../../../model/mesh/proxy-settings.ts';
import { typedExtension } from '../../messages/any.ts';
import type { HttpFilterContributor } from './contributor.ts';

const filter = typedExtension('envoy.filters.http.router', RouterSchema);

const routerWithoutEnvoyHeaders = typedExtension('envoy.filters.http.router', RouterSchema, {
  suppressEnvoyHeaders: true,
});

export const router: HttpFilterContributor = ({ shape, push }) => {
  const { envoyDebugHeaders } = proxySettingsOf(shape, push.mesh).proxyHeaders;
  return [envoyDebugHeaders?.disabled ? routerWithoutEnvoyHeaders : filter];
};
