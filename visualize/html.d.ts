/** As `npm run build` puts it into the page: its text. */
declare module '*.html' {
  const text: string;
  export default text;
}
