import {
  anyValue,
  type FieldError,
  optional,
  port,
  required,
  restrictions,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { withoutEffect } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { duplicateErrors } from '../field-rules.ts';
import { gatewayApiGroup, group, hostname, kindName, listOf, namespace, objectName } from './fields.ts';
import type { ParentReference, RouteObject } from './http-route.ts';

const parentReference = struct<ParentReference>({
  group: withDefault(group, gatewayApiGroup),
  kind: withDefault(kindName, 'Gateway'),
  namespace: optional(namespace),
  name: required(objectName),
  ...restrictions({ sectionName: optional(objectName), port: optional(port) }),
});

export const routeFields = {
  parentRefs: withDefault(listOf(parentReference, 0, 32), []),
  ...restrictions({ hostnames: withDefault(listOf(hostname, 0, 16), []) }),
  useDefaultGateways: withoutEffect(optional(anyValue), 'default Gateways are not supported'),
};

const maxMatches = 128;

export function routeErrors({ parentRefs, rules }: RouteObject, path: string): FieldError[] {
  const matches = rules.reduce((sum, routeRule) => sum + routeRule.matches.length, 0);
  const pathPrefix = path === '' ? '' : `${path}.`;
  return [
    ...parentErrors(parentRefs, `${pathPrefix}parentRefs`),
    ...duplicateErrors(
      rules,
      (routeRule) => routeRule.name,
      (index) => `${pathPrefix}rules[${index}].name`,
      'name',
    ),
    ...violation.errorsAt(
      `${pathPrefix}rules`,
      matches > maxMatches ? violation.tooLarge(maxMatches, matches, 'matches in all rules') : undefined,
    ),
  ];
}

function parentErrors(parents: readonly ParentReference[], path: string): FieldError[] {
  const parentOf = ({ group: targetGroup, kind, namespace: parentNamespace = '', name }: ParentReference): string =>
    [targetGroup, kind, parentNamespace, name].join('/');
  const partOf = ({ sectionName, port: number }: ParentReference): string => `${sectionName ?? ''}:${number ?? ''}`;
  return parents.flatMap((parent, index) => {
    const sameParents = parents.slice(0, index).filter((earlierParent) => parentOf(earlierParent) === parentOf(parent));
    if (sameParents.some((other) => partOf(other) === partOf(parent))) {
      return [violation.fieldError(`${path}[${index}]`, violation.duplicate('repeats an earlier reference'))];
    }
    const refersToWholeParent = [parent, ...sameParents].some((reference) => partOf(reference) === ':');
    return violation.errorsAt(
      `${path}[${index}]`,
      sameParents.length > 0 && refersToWholeParent
        ? violation.conflict('refers to the same parent as another reference: each must set sectionName or port')
        : undefined,
    );
  });
}
