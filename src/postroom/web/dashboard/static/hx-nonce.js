// An attribute of htmx counts only where the page's own word stands beside it, which no text from outside can know.
(() => {
  const isOurs = (element) => Boolean(htmx.config.nonce) && element.getAttribute?.("hx-nonce") === htmx.config.nonce;
  const onlyTheMainPart = (tasks) => {
    const main = tasks.filter((task) => task.type === "main");
    tasks.splice(0, tasks.length, ...main);
  };
  htmx.registerExtension("nonce", {
    htmx_before_init: isOurs,
    htmx_before_on_init: () => false,
    htmx_config_request: (_, {ctx}) => isOurs(ctx.sourceElement),
    htmx_ws_before_connection: isOurs,
    htmx_ws_before_message_outgoing: () => false,
    htmx_before_swap: (_, {tasks}) => onlyTheMainPart(tasks),
  });
})();
