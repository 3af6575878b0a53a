/**
 * Encodes a virtual host in two parts: name and domains depend on the client's namespace, the other fields rarely do.
 */
import { create } from '@bufbuild/protobuf';
import {
  type Route,
  type VirtualHost,
  VirtualHostSchema,
} from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { Origin } from '../../../model/config/config.ts';
import { originsOf, withOrigins } from '../../inputs/message-origin.ts';
import type { NamedPart } from '../../messages/part-block.ts';
import { Encodable } from '../../messages/resource.ts';
import { encodeDeterministically } from '../../messages/wire-form.ts';
import { virtualHost } from '../translate/route-configuration.ts';

export function routesPart(routes: Route[], origins: readonly Origin[]): Encodable {
  return new Encodable(VirtualHostSchema, withOrigins(virtualHost('', [], routes), origins));
}

let lastNumber = 0;

/** Name and domains are fields 1 and 2, so their bytes followed by the other fields' are a valid message. */
export class VirtualHostPart implements NamedPart {
  readonly number = ++lastNumber;
  readonly name: string;
  readonly domains: readonly string[];
  readonly remainder: Encodable;
  #head: Uint8Array | undefined;

  constructor(name: string, domains: readonly string[], otherFields: Encodable) {
    this.name = name;
    this.domains = domains;
    this.remainder = otherFields;
  }

  get message(): VirtualHost {
    const otherFields = this.remainder.message as VirtualHost;
    return withOrigins({ ...otherFields, name: this.name, domains: [...this.domains] }, originsOf(otherFields));
  }

  get chunks(): readonly Uint8Array[] {
    const { name, domains } = this;
    this.#head ??= encodeDeterministically(
      VirtualHostSchema,
      create(VirtualHostSchema, { name, domains: [...domains] }),
    );
    return [this.#head, this.remainder.bytes];
  }
}
