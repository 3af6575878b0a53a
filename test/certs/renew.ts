/** `node test/certs/renew.ts DIRECTORY`: replaces the server certificate below a directory that the demo created. */
import { openServerCertificates, renewServerCertificate } from './issued-certificates.ts';

const root = process.argv[2];
if (root === undefined) {
  process.stderr.write('usage: renew.ts DIRECTORY (the one that holds authority/ and server/)\n');
  process.exit(2);
}
const certificates = openServerCertificates(root);
const { serialNumber } = renewServerCertificate(certificates);
process.stdout.write(`${certificates.directory}/tls.crt now has serial number ${serialNumber}\n`);
