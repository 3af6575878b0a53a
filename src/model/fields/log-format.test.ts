import { describe, expect, it } from 'vitest';
import { logFormatMistake } from './log-format.ts';

/** As Envoy 1.40 answered to each. */
describe('a format of an access log', () => {
  it.each([
    ...['%METADATA(ROUTE:x)%', '%CEL(request.path)%', '%REQ_WITHOUT_QUERY(:PATH)%', '%%', '%REQ(a):5%', '%REQ(A?B)%'],
    ...['%START_TIME(%Y:%m)%', '%ENVIRONMENT(X)% %TRACE_ID%', 'no command', '', '%START_TIME(%s.%3f)% "%DURATION%"'],
    ...['%GRPC_STATUS(NUMBER)%', '%PATH(NQ)%', '%DYNAMIC_METADATA(a:b):9%', '%RESPONSE_CODE_DETAILS%'],
  ])('%s is one', (format) => {
    expect(logFormatMistake(format)).toBeUndefined();
  });

  it.each([
    ['%FOO%', 'has %FOO%, which is no command of an access log'],
    ['100%', 'has a % that begins no command of an access log: "%"'],
    ['%REQ(%', 'has a % that begins no command of an access log: "%REQ(%"'],
    ['%REQ(a):x%', 'has a % that begins no command of an access log: "%REQ(a):x%"'],
    ['%REQ%', 'has %REQ%, which needs parameters'],
    ['%DURATION(1)%', 'has %DURATION(1)%, which takes neither parameters nor a length'],
    ['%RESPONSE_CODE:3%', 'has %RESPONSE_CODE:3%, which takes neither parameters nor a length'],
    ['%METADATA(FOO:x)%', 'has %METADATA(FOO:x)%: FOO is no kind of metadata'],
    ['%REQ(A?B?C)%', 'has %REQ(A?B?C)%, with more than one alternative'],
    ['%PATH(x)%', expect.stringContaining('takes one of WQ, NQ')],
  ])('%s is none', (format, mistake) => {
    expect(logFormatMistake(format)).toEqual(mistake);
  });
});
