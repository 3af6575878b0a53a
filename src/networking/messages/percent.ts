import { create } from '@bufbuild/protobuf';
import {
  type RuntimeFractionalPercent,
  RuntimeFractionalPercentSchema,
} from '../../gen/envoy/config/core/v3/base_pb.ts';
import {
  type FractionalPercent,
  FractionalPercent_DenominatorType,
  FractionalPercentSchema,
} from '../../gen/envoy/type/v3/percent_pb.ts';
import type { Percent } from '../../model/kinds/virtual-service/virtual-service.ts';

/** Returns millionths. An absent percentage means 100 %. */
export function fractionalPercent(percent: Percent | undefined): FractionalPercent {
  return percent === undefined
    ? create(FractionalPercentSchema, { numerator: 100, denominator: FractionalPercent_DenominatorType.HUNDRED })
    : create(FractionalPercentSchema, {
        numerator: Math.round(percent.value * 10_000),
        denominator: FractionalPercent_DenominatorType.MILLION,
      });
}

/** Like {@link fractionalPercent}, but Envoy's runtime can override the value. */
export function runtimePercent(percent: Percent | undefined): RuntimeFractionalPercent {
  return create(RuntimeFractionalPercentSchema, { defaultValue: fractionalPercent(percent) });
}
