/** A locality is `region[/zone[/subzone]]`; each part may be `*`. */

import { type FieldError, fieldPath } from '../../fields/decode.ts';
import * as violation from '../../fields/violation.ts';
import type { LocalityLoadBalancerSetting } from './traffic-policy.ts';

export function localityErrors(setting: LocalityLoadBalancerSetting, path: string): FieldError[] {
  const { distribute = [], failover = [], failoverPriority = [] } = setting;
  const errors: FieldError[] = [];
  if (distribute.length > 0 && (failover.length > 0 || failoverPriority.length > 0)) {
    errors.push(violation.fieldError(path, violation.exclusiveFields(['distribute', 'failover or failoverPriority'])));
  }
  for (const [index, { from, to }] of distribute.entries()) {
    const entryPath = `${fieldPath(path, 'distribute')}[${index}]`;
    const sum = Object.values(to).reduce((total, weight) => total + weight, 0);
    if (sum !== 100)
      errors.push(
        violation.fieldError(fieldPath(entryPath, 'to'), violation.outOfRange('weights with the sum 100', sum)),
      );
    errors.push(...localityViolation(from, fieldPath(entryPath, 'from')));
    for (const locality of Object.keys(to))
      errors.push(...localityViolation(locality, fieldPath(fieldPath(entryPath, 'to'), locality)));
    errors.push(...overlapErrors(Object.keys(to), fieldPath(entryPath, 'to')));
  }
  errors.push(
    ...overlapErrors(
      distribute.map((entry) => entry.from),
      fieldPath(path, 'distribute'),
    ),
  );
  for (const [index, { from, to }] of failover.entries()) {
    const entryPath = `${fieldPath(path, 'failover')}[${index}]`;
    if (from === to)
      errors.push(violation.fieldError(entryPath, violation.conflict(`from and to must differ, both are ${from}`)));
    for (const [field, region] of Object.entries({ from, to })) {
      if (/[/*]/.test(region))
        errors.push(
          violation.fieldError(fieldPath(entryPath, field), violation.mustBe('a region without zone or *', region)),
        );
    }
  }
  return errors;
}

function localityViolation(locality: string, path: string): FieldError[] {
  const localityParts = locality.split('/');
  if (localityParts.length > 3 || localityParts.includes('')) {
    return [violation.fieldError(path, violation.mustBe('region, region/zone or region/zone/subzone', locality))];
  }
  const star = localityParts.indexOf('*');
  if (star >= 0 && star < localityParts.length - 1)
    return [violation.fieldError(path, violation.mustBe('a locality with * in the last part only', locality))];
  return [];
}

function overlapErrors(localities: readonly string[], path: string): FieldError[] {
  return localities.flatMap((locality, index) => {
    const overlappingLocality = localities
      .slice(0, index)
      .find((candidate) => containsLocality(candidate, locality) || containsLocality(locality, candidate));
    return overlappingLocality === undefined
      ? []
      : [violation.fieldError(path, violation.conflict(`${locality} and ${overlappingLocality} overlap`))];
  });
}

function containsLocality(widerLocality: string, narrowerLocality: string): boolean {
  const widerParts = widerLocality.split('/').filter((segment) => segment !== '*');
  const narrowParts = narrowerLocality.split('/').filter((segment) => segment !== '*');
  return widerParts.every((segment, index) => segment === narrowParts[index]);
}
