/** Encodes the route configurations of gateways in pieces, because they may have tens of thousands of routes. */
import { create, fromBinary } from '@bufbuild/protobuf';
import { type VirtualHost, VirtualHostSchema } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import type { Part } from '../../messages/part.ts';
import { PartBlock } from '../../messages/part-block.ts';
import { Encodable, type EnvoyResource, type PartToEncode, ResourceOfParts } from '../../messages/resource.ts';
import { virtualHostsField } from './planned-routes.ts';

/** Maximum number of routes per piece. Encoding a piece takes a few milliseconds. */
const maxRoutesOfPiece = 256;
const maxHostsOfBlock = 64;

/** Yields the pieces to encode, then returns the same configuration. */
export function* routesInPieces(resource: EnvoyResource): Generator<PartToEncode | undefined, EnvoyResource> {
  if (resource instanceof ResourceOfParts || resource.isEncoded) return resource;
  const { virtualHosts, ...otherFields } = resource.message as RouteConfiguration;
  const { name, schema } = resource;
  const blocks: PartBlock<HostInPieces>[] = [];
  let hostsOfBlock: HostInPieces[] = [];
  let routes = 0;
  for (const host of virtualHosts) {
    const hostInPieces = new HostInPieces(host);
    yield* hostInPieces.hostPieces;
    hostsOfBlock.push(hostInPieces);
    routes += host.routes.length;
    if (hostsOfBlock.length < maxHostsOfBlock && routes < maxRoutesOfPiece) continue;
    blocks.push(new PartBlock(virtualHostsField, hostsOfBlock));
    [hostsOfBlock, routes] = [[], 0];
  }
  if (hostsOfBlock.length > 0) blocks.push(new PartBlock(virtualHostsField, hostsOfBlock));
  yield* blocks;
  const message: RouteConfiguration = { ...otherFields, virtualHosts: [] };
  return new ResourceOfParts({ name, schema, message, dependsOn: () => resource.dependsOn }, blocks);
}

/** Encodes a virtual host as several messages, whose repeated fields Protobuf concatenates. */
class HostInPieces implements Part {
  readonly hostPieces: readonly Encodable[];

  constructor(host: VirtualHost) {
    const { routes } = host;
    const encodablePieces: Encodable[] = [];
    for (let start = 0; start === 0 || start < routes.length; start += maxRoutesOfPiece) {
      const pieceRoutes = routes.slice(start, start + maxRoutesOfPiece);
      const pieceInit =
        start === 0 ? { ...host, routes: pieceRoutes } : create(VirtualHostSchema, { routes: pieceRoutes });
      encodablePieces.push(new Encodable(VirtualHostSchema, pieceInit));
    }
    this.hostPieces = encodablePieces;
  }

  get chunks(): readonly Uint8Array[] {
    return this.hostPieces.map(({ bytes }) => bytes);
  }

  get message(): VirtualHost {
    return fromBinary(VirtualHostSchema, Buffer.concat(this.chunks));
  }
}
