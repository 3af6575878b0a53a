import { create } from '@bufbuild/protobuf';
import {
  HeaderValueOption_HeaderAppendAction as Append,
  type HeaderValueOption,
  HeaderValueOptionSchema,
} from '../../../gen/envoy/config/core/v3/base_pb.ts';
import { compareText } from '../../../model/config/config.ts';
import type { HeaderOperations, Headers } from '../../../model/kinds/virtual-service/virtual-service.ts';

export interface HeaderFields {
  readonly requestHeadersToAdd: HeaderValueOption[];
  readonly requestHeadersToRemove: string[];
  readonly responseHeadersToAdd: HeaderValueOption[];
  readonly responseHeadersToRemove: string[];
}

export function headerFields(headers: Headers | undefined): HeaderFields {
  return {
    requestHeadersToAdd: headerChanges(headers?.request),
    requestHeadersToRemove: removedHeaderNames(headers?.request),
    responseHeadersToAdd: headerChanges(headers?.response),
    responseHeadersToRemove: removedHeaderNames(headers?.response),
  };
}

export function joinedHeaders(a: HeaderFields, b: HeaderFields): HeaderFields {
  return {
    requestHeadersToAdd: [...a.requestHeadersToAdd, ...b.requestHeadersToAdd],
    requestHeadersToRemove: [...a.requestHeadersToRemove, ...b.requestHeadersToRemove],
    responseHeadersToAdd: [...a.responseHeadersToAdd, ...b.responseHeadersToAdd],
    responseHeadersToRemove: [...a.responseHeadersToRemove, ...b.responseHeadersToRemove],
  };
}

/**
 * Returns the host to rewrite, because Envoy cannot modify the host as a header. Adding the host is equivalent to setting it, because a request has
 * one host.
 */
export function hostFromHeaders(headers: Headers | undefined): string | undefined {
  const { set = {}, add = {} } = headers?.request ?? {};
  return [...Object.entries(set), ...Object.entries(add)].find(([name]) => isHost(name))?.[1];
}

function headerChanges(operations: HeaderOperations | undefined): HeaderValueOption[] {
  return [
    ...headerOptions(operations?.set, Append.OVERWRITE_IF_EXISTS_OR_ADD),
    ...headerOptions(operations?.add, Append.APPEND_IF_EXISTS_OR_ADD),
  ];
}

function headerOptions(
  values: Readonly<Record<string, string>> | undefined,
  appendAction: Append,
): HeaderValueOption[] {
  return Object.entries(values ?? {})
    .filter(([name]) => !isRoutingHeader(name))
    .sort(([a], [b]) => compareText(a, b))
    .map(([key, value]) => create(HeaderValueOptionSchema, { header: { key, value }, appendAction }));
}

function removedHeaderNames(operations: HeaderOperations | undefined): string[] {
  return (operations?.remove ?? []).filter((name) => !isRoutingHeader(name)).sort(compareText);
}

function isRoutingHeader(name: string): boolean {
  return name.startsWith(':') || isHost(name);
}

function isHost(name: string): boolean {
  const lowerCaseName = name.toLowerCase();
  return lowerCaseName === 'host' || lowerCaseName === ':authority';
}
