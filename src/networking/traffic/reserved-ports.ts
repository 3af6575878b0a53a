/** Generated listeners must not bind these ports. */
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';

const readinessPort = 15021;
const prometheusPort = 15090;

/** Whether the proxy itself binds the port on all addresses. */
export function isReservedPort(port: number, mesh: MeshConfig): boolean {
  return (
    port === mesh.proxyListenPort ||
    port === mesh.proxyInboundListenPort ||
    port === readinessPort ||
    port === prometheusPort
  );
}

/** Whether the proxy reported that it lacks the privilege to bind the port. */
export function isPrivilegedPort(port: number, shape: ProxyShape): boolean {
  return port > 0 && port < 1024 && shape.metadata.UNPRIVILEGED_POD === 'true';
}
