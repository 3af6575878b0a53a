/** Encodes the route configurations of gateways in pieces, because they may have tens of thousands of routes. */
import { create, fromBinary } from '@bufbuild/protobuf';
import { type VirtualHost, VirtualHostSchema } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import type { Part } from '../../messages/part.ts';
import { PartBlock } from '../../messages/part-block.ts';
import { Encodable, type EnvoyResource, type PartToEncode, ResourceOfParts } from '../../messages/resource.ts';
import { virtualHostsField } from './planned-routes.ts';

/** Maximum number of routes per piece, which take a few milliseconds. */
const maxRoutesOfPiece = 256;
/** Maximum number of hosts in a block, which is encoded in one step. */
const maxHostsOfBlock = 64;

/** Yields the pieces to encode, then returns the same configuration. */
export function* routesInPieces(resource: EnvoyResource): Generator<PartToEncode | undefined, EnvoyResource> {
  if (resource instanceof ResourceOfParts || resource.isEncoded) return resource;
  const { virtualHosts, ...rest } = resource.message as RouteConfiguration;
  const { name, schema } = resource;
  const blocks: PartBlock<HostInPieces>[] = [];
  let parts: HostInPieces[] = [];
  let routes = 0;
  for (const host of virtualHosts) {
    const part = new HostInPieces(host);
    yield* part.pieces;
    parts.push(part);
    routes += host.routes.length;
    if (parts.length < maxHostsOfBlock && routes < maxRoutesOfPiece) continue;
    blocks.push(new PartBlock(virtualHostsField, parts));
    [parts, routes] = [[], 0];
  }
  if (parts.length > 0) blocks.push(new PartBlock(virtualHostsField, parts));
  yield* blocks;
  const message: RouteConfiguration = { ...rest, virtualHosts: [] };
  return new ResourceOfParts({ name, schema, message, dependsOn: () => resource.dependsOn }, blocks);
}

/** Encodes a virtual host as several messages, whose repeated fields Protobuf concatenates. */
class HostInPieces implements Part {
  readonly pieces: readonly Encodable[];

  constructor(host: VirtualHost) {
    const { routes } = host;
    const pieces: Encodable[] = [];
    for (let from = 0; from === 0 || from < routes.length; from += maxRoutesOfPiece) {
      const some = routes.slice(from, from + maxRoutesOfPiece);
      const piece = from === 0 ? { ...host, routes: some } : create(VirtualHostSchema, { routes: some });
      pieces.push(new Encodable(VirtualHostSchema, piece));
    }
    this.pieces = pieces;
  }

  get chunks(): readonly Uint8Array[] {
    return this.pieces.map(({ bytes }) => bytes);
  }

  get message(): VirtualHost {
    return fromBinary(VirtualHostSchema, Buffer.concat(this.chunks));
  }
}
