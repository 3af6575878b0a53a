/** The built text of the page. */
declare module '*.html' {
  const text: string;
  export default text;
}
