import { anyUnpack } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { HTTPFaultSchema } from '../../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import type { HttpFaultInjection } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { faultConfig } from './fault.ts';

const shareOf = (fault: HttpFaultInjection): (number | undefined)[] => {
  const { delay, abort } = anyUnpack(faultConfig(fault)!, HTTPFaultSchema)!;
  return [delay?.percentage?.numerator, abort?.percentage?.numerator];
};

test('a fault without a percentage affects no request, as in Istio', () => {
  expect(shareOf({ delay: { fixedDelayMs: 5_000 }, abort: { httpStatus: 503 } })).toEqual([0, 0]);
});

test("a fault's percentage is converted to millionths", () => {
  const percentage = { value: 0.5 };
  expect(shareOf({ delay: { fixedDelayMs: 5_000, percentage }, abort: { grpcStatus: 'ABORTED', percentage } })).toEqual(
    [5_000, 5_000],
  );
});
