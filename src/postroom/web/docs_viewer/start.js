SwaggerUIBundle({ url: "/openapi.json", dom_id: "#viewer", deepLinking: true, tryItOutEnabled: true, validatorUrl: null });
