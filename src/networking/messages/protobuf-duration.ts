import { create } from '@bufbuild/protobuf';
import { type Duration, DurationSchema } from '@bufbuild/protobuf/wkt';

export function duration(ms: number): Duration {
  const seconds = Math.trunc(ms / 1000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1000) * 1e6) });
}

export function optionalDuration(ms: number | undefined): Duration | undefined {
  return ms === undefined ? undefined : duration(ms);
}
