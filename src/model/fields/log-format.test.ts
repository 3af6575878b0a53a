import { describe, expect, it } from 'vitest';
import { codedViolation } from '../../../test/fixtures/coded-error.ts';
import { logFormatViolation } from './log-format.ts';

/** Expected results are those of Envoy 1.40. */
describe('the access log format', () => {
  it.each([
    ...['%METADATA(ROUTE:x)%', '%CEL(request.path)%', '%REQ_WITHOUT_QUERY(:PATH)%', '%%', '%REQ(a):5%', '%REQ(A?B)%'],
    ...['%START_TIME(%Y:%m)%', '%ENVIRONMENT(X)% %TRACE_ID%', 'no command', '', '%START_TIME(%s.%3f)% "%DURATION%"'],
    ...['%GRPC_STATUS(NUMBER)%', '%PATH(NQ)%', '%DYNAMIC_METADATA(a:b):9%', '%RESPONSE_CODE_DETAILS%'],
  ])('is valid if it is %s', (format) => {
    expect(logFormatViolation(format)).toBeUndefined();
  });

  it.each([
    ['%FOO%', 'FIELD_FORMAT_INVALID got "%FOO%"'],
    ['100%', 'FIELD_FORMAT_INVALID got "%"'],
    ['%REQ(%', 'FIELD_FORMAT_INVALID got "%REQ(%"'],
    ['%REQ(a):x%', 'FIELD_FORMAT_INVALID got "%REQ(a):x%"'],
    ['%REQ%', 'FIELD_FORMAT_INVALID got "%REQ%"'],
    ['%DURATION(1)%', 'FIELD_FORMAT_INVALID got "%DURATION(1)%"'],
    ['%RESPONSE_CODE:3%', 'FIELD_FORMAT_INVALID got "%RESPONSE_CODE:3%"'],
    ['%METADATA(FOO:x)%', 'FIELD_FORMAT_INVALID got "%METADATA(FOO:x)%"'],
    ['%REQ(A?B?C)%', 'FIELD_FORMAT_INVALID got "%REQ(A?B?C)%"'],
    ['%PATH(x)%', 'FIELD_FORMAT_INVALID got "%PATH(x)%"'],
  ])('is invalid if it is %s', (format, coded) => {
    expect(codedViolation(logFormatViolation(format)!)).toBe(coded);
  });
});
